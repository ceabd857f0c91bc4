// Package peers has the servers on one database tell each other that they have written, where the database
// itself says nothing: in MySQL, and in Postgres behind a transaction pooler. A server that is told by all
// others need not ask the database all the time.
//
// Nothing depends on what is told but how soon a change is seen. A server that hears nothing of another
// one that has a Lease asks the database as often as if nobody told it anything; and what gets lost while all
// others are heard, the next question finds, a second later at most.
//
// The package owns the requests between servers and who was heard when. It must not know what is written.
package peers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/sqlstore"
)

// Path is where a server is told: POST, with parameters from, to and revision. Other servers may, and
// who has the right guard.RightOfServers.
const Path = "/plinth/wake"

const (
	// Beat is how often a server tells the others that it is there.
	Beat = 5 * time.Second
	// beats is how many of these may be missed until a server counts as not heard.
	beats = 3
	// quiet is the time without writes after which the next one is told. What follows it sooner is found
	// by those who were told: they ask often for a while.
	quiet = 100 * time.Millisecond
	// timeout bounds a request, and pause is how long a server is left alone that could not be told.
	timeout = 2 * time.Second
	pause   = Beat / 2
	// mostHeard bounds what is remembered of servers whose Leases are not known.
	mostHeard = 1000
	// longestIdentity bounds what a server may call itself: the name of its host, and a UUID.
	longestIdentity = 512
)

// Config of Peers.
type Config struct {
	Store    *sqlstore.Store
	Identity string // of this server, as in its Lease
	// Transport reaches other servers, trusts them alone, and shows them the certificate of one.
	Transport http.RoundTripper
	Beat      time.Duration // Beat
	Logger    *slog.Logger
}

// Peers are the servers on one database, seen from one.
type Peers struct {
	c      Config
	client http.Client

	sending sync.WaitGroup

	mu    sync.Mutex
	lines map[string]*line     // to the others, by identity
	heard map[string]time.Time // when others told this server last, by identity
	all   bool                 // all others are heard
}

// line is the way to another server.
type line struct {
	busy, again bool      // a request is under way; another must follow
	failed      time.Time // when the last one failed; zero: it did not
}

// New returns Peers that have not started.
func New(c Config) *Peers {
	if c.Beat == 0 {
		c.Beat = Beat
	}
	return &Peers{
		c: c,
		client: http.Client{
			Transport: c.Transport, Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		lines: map[string]*line{},
		heard: map[string]time.Time{},
	}
}

// Transport returns one for Config. Servers that share a database share an authority, too; each has a
// certificate for the name of the kubernetes Service.
func Transport(authority []byte, own func() (*tls.Certificate, error)) *http.Transport {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &http.Transport{
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "kubernetes.default.svc",
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own() },
		},
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}
}

// Run tells the others until ctx ends. When it returns, no request is under way.
func (p *Peers) Run(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	defer p.sending.Wait()
	tick := time.NewTicker(p.c.Beat)
	defer tick.Stop()
	var wrote time.Time
	for p.tellAll(ctx); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.tellAll(ctx)
		case <-p.c.Store.Others().Wrote():
			now := time.Now()
			if now.Sub(wrote) > quiet {
				p.tellAll(ctx)
			}
			wrote = now
		}
	}
}

// tellAll begins to tell those others who want to be told, and judges whether all others are heard.
func (p *Peers) tellAll(ctx context.Context) {
	others := cluster.Others(p.c.Store, p.c.Identity)
	p.judge(others)
	for _, o := range others {
		if o.Tell != "" && p.take(o.Identity) {
			p.sending.Go(func() { p.tell(ctx, o) })
		}
	}
}

// take takes the line to another server, unless it is in use: then whoever uses it tells the server again.
func (p *Peers) take(identity string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[identity]
	if l == nil {
		l = &line{}
		p.lines[identity] = l
	}
	if l.busy {
		l.again = true
		return false
	}
	l.busy = time.Since(l.failed) > pause
	return l.busy
}

// tell tells another server until there is no more to tell it.
func (p *Peers) tell(ctx context.Context, o cluster.Other) {
	for {
		err := p.send(ctx, o)
		if err != nil && ctx.Err() == nil {
			p.c.Logger.Debug("another server could not be told of a change; it finds it by itself", "server", o.Identity, "address", o.Tell, "err", err)
		}
		p.mu.Lock()
		l := p.lines[o.Identity]
		again := l.again && err == nil
		l.busy, l.again, l.failed = again, false, time.Time{}
		if err != nil {
			l.failed = time.Now()
		}
		p.mu.Unlock()
		if !again {
			return
		}
	}
}

func (p *Peers) send(ctx context.Context, o cluster.Other) error {
	query := url.Values{"from": {p.c.Identity}, "to": {o.Identity}, "revision": {strconv.FormatInt(p.c.Store.Revision(), 10)}}
	to := url.URL{Scheme: "https", Host: o.Tell, Path: Path, RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}

// ErrNotMe says that a message is for another server.
var ErrNotMe = errors.New("this is another server")

// Hear takes what another server says, whose right to say so was checked: that it is there, and has written up
// to revision.
func (p *Peers) Hear(query url.Values) error {
	if query.Get("to") != p.c.Identity {
		return ErrNotMe
	}
	revision, err := strconv.ParseInt(query.Get("revision"), 10, 64)
	if err != nil {
		return err
	}
	from := query.Get("from")
	if len(from) > longestIdentity {
		return fmt.Errorf("from: the identity of a server has at most %d bytes", longestIdentity)
	}
	p.c.Store.Others().Told(revision)
	p.note(strings.Clone(from)) // without the rest of the query
	p.judge(cluster.Others(p.c.Store, p.c.Identity))
	return nil
}

func (p *Peers) note(identity string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heard) < mostHeard || !p.heard[identity].IsZero() {
		p.heard[identity] = time.Now()
	}
}

// judge tells the store whether all other servers are heard.
func (p *Peers) judge(others []cluster.Other) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for identity, at := range p.heard {
		if time.Since(at) > beats*p.c.Beat {
			delete(p.heard, identity)
		}
	}
	all := true
	there := make(map[string]bool, len(others))
	for _, o := range others {
		there[o.Identity] = true
		_, heard := p.heard[o.Identity]
		all = all && heard
	}
	for identity, l := range p.lines {
		if !there[identity] && !l.busy {
			delete(p.lines, identity)
		}
	}
	if all != p.all {
		p.c.Logger.Debug("whether all other servers tell this one when they write", "all", all, "others", len(others))
	}
	p.all = all
	p.c.Store.Others().AllTell(all)
}

// All tells whether all other servers tell this one when they write.
func (p *Peers) All() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
