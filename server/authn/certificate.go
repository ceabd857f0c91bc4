package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	authx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Conn remembers the client of one connection. A client certificate cannot change during a
// connection, and verifying its chain costs more than the rest of a small read, so it is
// verified at the first request only, and again when the trusted authorities have changed.
type Conn struct {
	who user.Info // of a connection inside the process; nil otherwise

	verifying sync.Mutex
	shown     atomic.Pointer[shown]
}

type connKey struct{}

// WithConn is for http.Server's ConnContext.
func WithConn(ctx context.Context) context.Context {
	return context.WithValue(ctx, connKey{}, new(Conn))
}

// WithUser marks requests that do not come over a network as sent by who.
func WithUser(ctx context.Context, who user.Info) context.Context {
	return context.WithValue(ctx, connKey{}, &Conn{who: who})
}

// shown is what a client certificate has shown. A value is never changed.
type shown struct {
	by    *trusted
	until time.Time // it is to be verified again; zero: nothing to verify

	who   user.Info // nil: nobody
	err   error     // why the certificate is no good for a user
	proxy bool      // the client may name others as the users of its requests

	counted remembered
}

// again is how soon a certificate that is no good is looked at again: it may become valid.
const again = time.Second

// certificate returns what the client certificate of a request shows now. It does so from
// memory but for the first request of a connection.
func (a *Authenticator) certificate(c *Conn, state *tls.ConnectionState) *shown {
	if s := c.shown.Load(); a.holds(s) {
		return s
	}
	c.verifying.Lock()
	defer c.verifying.Unlock()
	if s := c.shown.Load(); a.holds(s) {
		return s
	}
	s := a.verify(state, a.trusted.Load())
	c.shown.Store(s)
	return s
}

// holds tells whether what was verified before is still true.
func (a *Authenticator) holds(s *shown) bool {
	return s != nil && s.by == a.trusted.Load() && (s.until.IsZero() || !a.now().After(s.until))
}

func (a *Authenticator) verify(state *tls.ConnectionState, by *trusted) *shown {
	s := &shown{by: by}
	if state == nil || len(state.PeerCertificates) == 0 {
		return s
	}
	own := a.ownership(state.PeerCertificates[0])
	s.who, s.until, s.err = a.client(state.PeerCertificates, by.clients)
	switch {
	case s.who != nil && own == ForServers:
		s.who = server
	case own != NotOwn:
		s.who, s.err = nil, errForOthers
	}
	if s.who != nil {
		s.counted = remembered{a.counts.of(s.who), a.counts.succeeded}
	} else {
		s.until = a.now().Add(again)
	}
	if by.proxies == nil || own != NotOwn {
		return s
	}
	until, err := a.frontProxy(state.PeerCertificates, by.proxies)
	switch s.proxy = err == nil; {
	case s.proxy && (s.who == nil || until.Before(s.until)):
		s.until = until
	case s.who == nil && s.err == nil: // it is good for neither, though it names nobody
		s.err = err
	}
	return s
}

// client returns the user that a certificate names; nil if it names none.
func (a *Authenticator) client(chain []*x509.Certificate, roots *x509.CertPool) (user.Info, time.Time, error) {
	chains, err := chain[0].Verify(a.verifyOptions(chain, roots))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("verify client certificate: %w", err)
	}
	var wrong []error
	for _, c := range chains {
		found, ok, err := authx509.CommonNameUserConversion.User(c)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case ok:
			return authenticated(found.User), end(c), nil
		}
	}
	return nil, time.Time{}, utilerrors.NewAggregate(wrong)
}

// frontProxy returns until when a certificate is one of a front proxy.
func (a *Authenticator) frontProxy(chain []*x509.Certificate, roots *x509.CertPool) (time.Time, error) {
	chains, err := chain[0].Verify(a.verifyOptions(chain, roots))
	if err != nil {
		return time.Time{}, fmt.Errorf("verify certificate of a front proxy: %w", err)
	}
	if name := chain[0].Subject.CommonName; !a.proxies.allows(name) {
		return time.Time{}, fmt.Errorf("x509: subject with cn=%s is not in the allowed list", name)
	}
	return end(chains[0]), nil
}

func (a *Authenticator) verifyOptions(chain []*x509.Certificate, roots *x509.CertPool) x509.VerifyOptions {
	o := authx509.DefaultVerifyOptions()
	o.Roots, o.Intermediates, o.CurrentTime = roots, x509.NewCertPool(), a.now()
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	return o
}

func end(chain []*x509.Certificate) time.Time {
	until := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	return until
}
