package torture

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// callTime is how long a call may take. Then its outcome is not known.
const callTime = 10 * time.Second

// client sends requests to the replicas, one after the other. It belongs to one goroutine.
type client struct {
	id      int
	rand    *rand.Rand
	history *History
	ways    []*endpoint
	at      int // replica that it talks to
	sent    int // requests
}

// endpoint is a replica as one client reaches it.
type endpoint struct {
	url    string
	client *http.Client
}

// newClient returns a client with connections of its own. Every other one speaks HTTP/1.1.
func newClient(id int, seed uint64, h *History, replicas []*replica) *client {
	c := &client{id: id, rand: rand.New(rand.NewPCG(seed, uint64(id))), history: h}
	for _, r := range replicas {
		transport := &http.Transport{
			TLSClientConfig: r.tls.Clone(), ForceAttemptHTTP2: id%2 == 0, TLSHandshakeTimeout: callTime,
			HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 4 * time.Second},
		}
		if id%2 == 1 {
			transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		c.ways = append(c.ways, &endpoint{"https://" + r.clients.Address(), &http.Client{Transport: transport}})
	}
	c.move()
	return c
}

func (c *client) close() {
	for _, w := range c.ways {
		w.client.CloseIdleConnections()
	}
}

// move goes on with any replica.
func (c *client) move() { c.at = c.rand.IntN(len(c.ways)) }

// request is what a call sends.
type request struct {
	method, path, media string
	body                []byte
}

func (c *client) open(ctx context.Context, q request, id string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, c.ways[c.at].url+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Audit-ID", id)
	if q.media != "" {
		r.Header.Set("Content-Type", q.media)
	}
	return c.ways[c.at].client.Do(r)
}

// nextID returns an id for the next call, which the log notes with what the call has written.
func (c *client) nextID() string {
	c.sent++
	return fmt.Sprintf("torture-%d-%d-%d-%d", c.history.Seed, c.history.Round, c.id, c.sent)
}

// send makes one request of a call and decodes the answer. It sets the call's Status and Error.
func (c *client) send(ctx context.Context, call *Call, q request) *wire {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	call.Status, call.Error = 0, ""
	r, err := c.open(ctx, q, call.ID)
	if err != nil {
		call.Error = err.Error()
		return nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	answer := new(wire)
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil { // of an answer that was cut off nothing counts
		call.Error = err.Error()
		return nil
	}
	call.Status = r.StatusCode
	if !call.OK() {
		call.Error = fmt.Sprintf("%s: %.300s", answer.Reason, answer.Message)
	}
	return answer
}

// wire is what answers have in common, as far as anybody here looks at it.
type wire struct {
	Metadata struct {
		Name, Namespace, ResourceVersion, Continue string
		Annotations                                map[string]string
	}
	Data            map[string]string
	Items           []wire
	Code            int
	Reason, Message string
}

func (w *wire) revision() int64 {
	n, _ := strconv.ParseInt(w.Metadata.ResourceVersion, 10, 64)
	return n
}

func (w *wire) item() Item {
	return Item{w.Metadata.Namespace + "/" + w.Metadata.Name, w.revision(), Content{w.Data["v"], w.Data["a"]}}
}

// configMap is an object as a client sends it; revision is 0 if it names none.
func configMap(key string, c Content, revision int64) []byte {
	namespace, name, _ := strings.Cut(key, "/")
	metadata := map[string]string{"name": name, "namespace": namespace}
	if revision != 0 {
		metadata["resourceVersion"] = strconv.FormatInt(revision, 10)
	}
	text, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": c.data()})
	return text
}

func (c Content) data() map[string]string {
	data := map[string]string{}
	if c.V != "" {
		data["v"] = c.V
	}
	if c.A != "" {
		data["a"] = c.A
	}
	return data
}

// seen is what clients have told each other: revisions that somebody has seen.
type seen struct {
	mu        sync.Mutex
	revisions []int64
}

func (s *seen) add(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revisions = append(s.revisions, revision); len(s.revisions) > 2000 {
		s.revisions = s.revisions[1000:]
	}
}

// any returns one that was seen, 0 if there are none; half of the time one of the last few hundred,
// which plinth must still know.
func (s *seen) any(r *rand.Rand) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.revisions) == 0 {
		return 0
	}
	from := 0
	if r.IntN(2) == 0 {
		from = max(0, len(s.revisions)-300)
	}
	return s.revisions[from+r.IntN(len(s.revisions)-from)]
}
