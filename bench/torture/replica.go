package torture

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/bench/way"
	"github.com/plinth-io/plinth/dialects"
)

// replica is a plinth behind a way that clients take to it, and one that it takes to its database. One
// goroutine uses it at a time.
type replica struct {
	*measure.Plinth
	number   int
	command  []string
	dir      string
	dsn      string
	clients  *way.Way
	database *way.Way // nil for SQLite
	tls      *tls.Config
}

// newReplica starts the number-th plinth on a database.
func newReplica(ctx context.Context, o *Options, number int, dsn, dir string) (r *replica, err error) {
	r = &replica{number: number, dir: filepath.Join(dir, fmt.Sprintf("replica-%d", number)), dsn: dsn}
	r.command = append(slices.Clone(o.Command), "--listen=127.0.0.1:0", "--history="+o.History.String(), "--keep=*=30m", "--controllers=none", "--database-timeout=5m")
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	if number > 0 {
		if err := CopyAuthority(filepath.Join(dir, "replica-0"), r.dir); err != nil {
			return nil, err
		}
	}
	if r.clients, err = way.New(""); err != nil {
		return nil, err
	}
	if dialects.Scheme(dsn) != "sqlite" {
		u, err := url.Parse(dsn)
		if err != nil {
			return nil, errors.New("the DSN cannot be parsed") // the parser's words repeat it
		}
		host := u.Host
		if number < len(o.Hosts) {
			host = o.Hosts[number]
		}
		if r.database, err = way.New(host); err != nil {
			return nil, err
		}
		u.Host = r.database.Address()
		r.dsn = u.String()
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return nil, err
	}
	r.tls, err = clientrest.TLSConfigFor(config)
	return r, err
}

// CopyAuthority gives a data directory the authority of another one, so that both may serve one database.
func CopyAuthority(from, to string) error {
	if err := os.MkdirAll(filepath.Join(to, "pki"), 0o700); err != nil {
		return err
	}
	for _, file := range []string{"ca.crt", "ca.key"} {
		text, err := os.ReadFile(filepath.Join(from, "pki", file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "pki", file), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// start starts the process and waits until it serves.
func (r *replica) start(ctx context.Context) (err error) {
	if r.Plinth, err = measure.StartPlinth(ctx, r.command, r.dir, r.dsn); err != nil {
		return fmt.Errorf("replica %d: %w", r.number, err)
	}
	r.clients.Lead(strings.TrimPrefix(r.URL, "https://"))
	return nil
}

// close ends the process, if there is one, and the ways.
func (r *replica) close() {
	if r.Plinth != nil {
		r.Kill()
	}
	r.clients.Close()
	if r.database != nil {
		r.database.Close()
	}
}

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
