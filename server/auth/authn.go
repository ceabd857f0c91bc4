package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	authx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Authenticator finds out who sent a request. It is an upstream authenticator.Request.
type Authenticator struct {
	roots  func() *x509.CertPool
	tokens carried
	now    func() time.Time
}

// NewAuthenticator knows callers by certificates that one of roots has signed, and others
// by their bearer tokens. It asks for roots once for each connection.
func NewAuthenticator(roots func() *x509.CertPool, tokens authenticator.Token) *Authenticator {
	return &Authenticator{roots: roots, tokens: newCarried(tokens), now: time.Now}
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

// User returns who sent r; an error means that the credentials are no good (401). What r has
// of them is taken out, so that none goes on to a server that requests are handed to.
func (a *Authenticator) User(r *http.Request) (user.Info, error) {
	response, _, err := a.AuthenticateRequest(r)
	if err != nil {
		return nil, err
	}
	if r.Header["Authorization"] != nil {
		r.Header.Del("Authorization")
	}
	headerrequest.ClearAuthenticationHeaders(r.Header, forwardedNames, forwardedUIDs, forwardedGroups, forwardedExtra)
	return response.User, nil
}

// The headers in which a front proxy says who asks: nobody is believed them here, and whoever
// a request is handed to must not take a client's own for ours.
var (
	forwardedNames  = headerrequest.StaticStringSlice{"X-Remote-User"}
	forwardedUIDs   = headerrequest.StaticStringSlice{"X-Remote-Uid"}
	forwardedGroups = headerrequest.StaticStringSlice{"X-Remote-Group"}
	forwardedExtra  = headerrequest.StaticStringSlice{"X-Remote-Extra-"}
)

// AuthenticateRequest implements authenticator.Request. A good certificate counts for more
// than a token, and a good token for more than a bad certificate.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	conn, ok := r.Context().Value(connKey{}).(*Conn)
	if !ok {
		conn = new(Conn)
	}
	conn.once.Do(func() { conn.who, conn.until, conn.err = a.identify(r.TLS) })
	err := conn.err
	if err == nil && !conn.until.IsZero() && a.now().After(conn.until) {
		err = errors.New("the client certificate has expired")
	}
	if (err != nil || conn.who == anonymous) && mayHaveToken(r) {
		response, ok, wrong := a.tokens.AuthenticateRequest(r)
		if ok {
			return response, true, nil
		}
		if wrong != nil {
			err = wrong
		}
	}
	if err != nil {
		return nil, false, err
	}
	return &authenticator.Response{User: conn.who}, true, nil
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
