package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// digest asks a replica for the digest of what it has in memory.
func (r *replica) digest(ctx context.Context) (d Digest, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.clients.Address()+"/plinth/digest", nil)
	if err != nil {
		return d, err
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tls, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	answer, err := c.Do(q)
	if err != nil {
		return d, err
	}
	defer answer.Body.Close()
	var text struct {
		Revision, Digest string
		Objects          int64
	}
	if err := json.NewDecoder(answer.Body).Decode(&text); err != nil || answer.StatusCode != http.StatusOK {
		return d, fmt.Errorf("%s: %w", answer.Status, err)
	}
	revision, err := strconv.ParseInt(text.Revision, 10, 64)
	return Digest{fmt.Sprintf("replica %d", r.number), revision, text.Objects, text.Digest}, err
}
