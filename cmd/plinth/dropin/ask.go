package dropin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// ErrOther is wrapped by errors about an etcd that is none of this package.
var ErrOther = errors.New("not plinth's")

// Ask returns the DSN of the database that a kube-apiserver with these --etcd-servers and this
// --etcd-prefix has. It waits until ctx ends for one of the servers to answer, because both
// programs may be started at once.
func Ask(ctx context.Context, servers []string, prefix string) (dsn string, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, server := range servers {
			dsn, err = ask(ctx, server, prefix)
			if err == nil || errors.Is(err, ErrOther) {
				return dsn, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", err
		}
	}
}

// client goes to the server itself, whatever proxy the environment has.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}

func ask(ctx context.Context, server, prefix string) (dsn string, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return "", fmt.Errorf("%s: %w: that is at an http:// address", server, ErrOther)
	}
	u.Path, u.RawQuery = page, url.Values{"prefix": {prefix}}.Encode()
	status, body, err := get(ctx, u)
	if err != nil {
		return "", fmt.Errorf("%s does not answer: %w", server, cause(err))
	}
	var a answer
	if status != http.StatusOK || json.Unmarshal(body, &a) != nil || a.DSN == "" {
		return "", fmt.Errorf("%s: %w: %s", server, ErrOther, other(ctx, u))
	}
	if _, err := os.Stat(a.Directory); err != nil {
		return "", fmt.Errorf("%s: %w: its directory %s is not on this machine", server, ErrOther, a.Directory)
	}
	return a.DSN, nil
}

// other says what a server is that is not of this package.
func other(ctx context.Context, u *url.URL) string {
	v := *u
	v.Path, v.RawQuery = "/version", ""
	var version struct {
		Server string `json:"etcdserver"`
	}
	status, body, err := get(ctx, &v)
	if err == nil && status == http.StatusOK && json.Unmarshal(body, &version) == nil && version.Server != "" {
		return "it is etcd " + version.Server
	}
	return "it does not say that it has a database"
}

// cause leaves the URL out of an error of client: it has the page.
func cause(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}

const mostAnswer = 64 << 10 // bytes

func get(ctx context.Context, u *url.URL) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	return resp.StatusCode, body, err
}
