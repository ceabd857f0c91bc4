package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	authx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Authenticator finds out who sent a request. It is an upstream authenticator.Request.
type Authenticator struct {
	roots func() *x509.CertPool
	now   func() time.Time
}

// NewAuthenticator knows callers by certificates that one of roots has signed. It asks
// for roots once for each connection.
func NewAuthenticator(roots func() *x509.CertPool) *Authenticator {
	return &Authenticator{roots: roots, now: time.Now}
}

var anonymous = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}

// Conn remembers who is at the other end of one connection. A client certificate
// cannot change during a connection, and to verify its chain costs more than all else
// that a small read does; so it is verified at the first request only.
type Conn struct {
	once  sync.Once
	who   user.Info
	until time.Time // end of the certificate chain; zero: for ever
	err   error
}

type connKey struct{}

// WithConn is for http.Server's ConnContext.
func WithConn(ctx context.Context) context.Context {
	return context.WithValue(ctx, connKey{}, new(Conn))
}

// WithUser marks requests that do not come over a network as made by who.
func WithUser(ctx context.Context, who user.Info) context.Context {
	c := &Conn{who: who}
	c.once.Do(func() {})
	return context.WithValue(ctx, connKey{}, c)
}

// User returns who sent r; an error means that the credentials are no good (401).
func (a *Authenticator) User(r *http.Request) (user.Info, error) {
	conn, ok := r.Context().Value(connKey{}).(*Conn)
	if !ok {
		conn = new(Conn)
	}
	conn.once.Do(func() { conn.who, conn.until, conn.err = a.identify(r.TLS) })
	if conn.err != nil {
		return nil, conn.err
	}
	if !conn.until.IsZero() && a.now().After(conn.until) {
		return nil, errors.New("the client certificate has expired")
	}
	if conn.who == anonymous && hasToken(r) {
		return nil, errors.New("there are no bearer tokens")
	}
	return conn.who, nil
}

// hasToken says whether a caller without a certificate tries to be somebody. As upstream,
// that is no anonymous request (authentication/request/bearertoken).
func hasToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	return strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != ""
}

// AuthenticateRequest implements authenticator.Request.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	who, err := a.User(r)
	if err != nil {
		return nil, false, err
	}
	return &authenticator.Response{User: who}, true, nil
}

func (a *Authenticator) identify(state *tls.ConnectionState) (user.Info, time.Time, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return anonymous, time.Time{}, nil
	}
	chains, err := state.PeerCertificates[0].Verify(a.options(state.PeerCertificates[1:]))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("verify client certificate: %w", err)
	}
	for _, chain := range chains {
		found, ok, err := authx509.CommonNameUserConversion.User(chain)
		if err == nil && ok {
			return authenticated(found.User), end(chain), nil
		}
	}
	return nil, time.Time{}, errors.New("the client certificate names no user: its common name is empty")
}

func (a *Authenticator) options(intermediates []*x509.Certificate) x509.VerifyOptions {
	o := x509.VerifyOptions{
		Roots:         a.roots(),
		Intermediates: x509.NewCertPool(),
		CurrentTime:   a.now(),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range intermediates {
		o.Intermediates.AddCert(c)
	}
	return o
}

// authenticated adds the group that everybody with good credentials is in (upstream:
// authentication/group.NewAuthenticatedGroupAdder).
func authenticated(who user.Info) user.Info {
	if slices.Contains(who.GetGroups(), user.AllAuthenticated) {
		return who
	}
	return &user.DefaultInfo{
		Name:   who.GetName(),
		UID:    who.GetUID(),
		Groups: append(slices.Clone(who.GetGroups()), user.AllAuthenticated),
		Extra:  who.GetExtra(),
	}
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
