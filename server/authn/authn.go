package authn

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Authenticator finds out who sent a request. It is an upstream authenticator.Request. Its methods
// are safe for concurrent use.
type Authenticator struct {
	own      func() *x509.CertPool
	owns     func(*x509.Certificate) Ownership // nil: none is the server's own
	clients  *bundle                           // authorities besides own; nil: none
	proxies  *proxies                          // nil: none
	renewing sync.Mutex
	trusted  atomic.Pointer[trusted] // changes with renewing held

	tokens    carried
	issuers   *issuers // nil: none
	anonymous anonymity
	audiences authenticator.Audiences
	counts    counts
	now       func() time.Time
	logger    *slog.Logger
	ended     ended
}

// NewAuthenticator returns an Authenticator that identifies callers by certificates that one
// of roots has signed, and others by their bearer tokens. Callers with neither are
// system:anonymous. Open makes those that are configured.
func NewAuthenticator(roots func() *x509.CertPool, tokens authenticator.Token) *Authenticator {
	a := &Authenticator{
		own: roots, tokens: newCarried(tokens), anonymous: newAnonymity(apiserver.AnonymousAuthConfig{Enabled: true}),
		counts: newCounts(), now: time.Now, logger: slog.New(slog.DiscardHandler),
	}
	a.Renew()
	return a
}

// Renew takes up the authorities as they are now. Certificates that were verified before are
// verified again.
func (a *Authenticator) Renew() {
	a.renewing.Lock()
	defer a.renewing.Unlock()
	t := &trusted{clients: a.clients.addTo(a.own().Clone())}
	if a.proxies != nil {
		t.proxies = a.proxies.addTo(x509.NewCertPool())
	}
	a.trusted.Store(t)
}

var (
	errNobody   = errors.New("the request has no credentials, and anonymous requests are not allowed to this path")
	errAudience = errors.New("the token is not for this server")
)

// User returns who sent r; an error means that the credentials are invalid (401). Credentials
// are removed from r, so that they do not reach a server to which r is proxied.
func (a *Authenticator) User(r *http.Request) (user.Info, error) {
	who, err := a.find(r)
	if err != nil {
		a.logger.Debug("a request was not authenticated", "err", err)
		a.tellEnded(r, err)
		return nil, err
	}
	if r.Header["Authorization"] != nil {
		r.Header.Del("Authorization")
	}
	a.proxies.strip(r.Header)
	return who, nil
}

// find returns who sent r, and counts.
func (a *Authenticator) find(r *http.Request) (user.Info, error) {
	c := connOf(r)
	if c.who != nil {
		return c.who, nil
	}
	s := a.certificate(c, r.TLS)
	if s.who != nil && !s.proxy {
		s.counted.inc()
		a.counts.lifetime.Observe(s.until.Sub(a.now()).Seconds())
		return s.who, nil
	}
	begun := a.now()
	response, ok, err := a.ask(r, s)
	if ok && !acceptable(a.audiences, response.Audiences) {
		err = errAudience
	}
	a.counts.add(response, ok, err, a.now().Sub(begun))
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errNobody
	}
	return response.User, nil
}

// AuthenticateRequest implements authenticator.Request.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	c := connOf(r)
	if c.who != nil {
		return &authenticator.Response{User: c.who}, true, nil
	}
	return a.ask(r, a.certificate(c, r.TLS))
}

func connOf(r *http.Request) *Conn {
	if c, ok := r.Context().Value(connKey{}).(*Conn); ok {
		return c
	}
	return new(Conn)
}

// ask asks for the user in upstream's order (kubeapiserver/authenticator): what a front proxy says,
// the certificate, a token. A good certificate counts for more than a token, and a good token for
// more than a bad certificate. Only a request without any of these is anonymous.
func (a *Authenticator) ask(r *http.Request, s *shown) (*authenticator.Response, bool, error) {
	if s.proxy {
		if response, ok, _ := a.proxies.headers.AuthenticateRequest(r); ok {
			response.User = authenticated(response.User)
			return response, true, nil
		}
	}
	if s.who != nil {
		return &authenticator.Response{User: s.who}, true, nil
	}
	err := s.err
	if mayHaveToken(r) {
		response, ok, wrong := a.tokens.AuthenticateRequest(forUs(r, a.audiences))
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
	if !a.anonymous.allows(path(r)) {
		return nil, false, nil
	}
	audiences, _ := authenticator.AudiencesFrom(r.Context())
	return &authenticator.Response{User: anonymous, Audiences: audiences}, true, nil
}

// path returns the path of a request; a TokenReview's has none.
func path(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return r.URL.Path
}

// acceptable tells whether a token that is for some audiences is for one of ours.
func acceptable(ours, theirs authenticator.Audiences) bool {
	return len(ours) == 0 || len(theirs) == 0 || len(ours.Intersect(theirs)) > 0
}

// authenticated adds the group system:authenticated (upstream:
// authentication/group.NewAuthenticatedGroupAdder).
func authenticated(who user.Info) user.Info {
	if who.GetName() == user.Anonymous || slices.ContainsFunc(who.GetGroups(), aboutAuthentication) {
		return who
	}
	return &user.DefaultInfo{
		Name:   who.GetName(),
		UID:    who.GetUID(),
		Groups: append(slices.Clone(who.GetGroups()), user.AllAuthenticated),
		Extra:  who.GetExtra(),
	}
}

func aboutAuthentication(group string) bool {
	return group == user.AllAuthenticated || group == user.AllUnauthenticated
}

// Everybody adds the group system:authenticated to users of tokens.
type Everybody struct{ authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (e Everybody) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	r, ok, err := e.Token.AuthenticateToken(ctx, token)
	if !ok || err != nil {
		return r, ok, err
	}
	return &authenticator.Response{Audiences: r.Audiences, User: authenticated(r.User)}, true, nil
}

var anonymous = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}

// anonymity says which requests may come from nobody in particular.
type anonymity struct {
	allowed bool
	paths   map[string]bool // the only ones; none: all
}

func newAnonymity(c apiserver.AnonymousAuthConfig) anonymity {
	a := anonymity{allowed: c.Enabled}
	for _, condition := range c.Conditions {
		if a.paths == nil {
			a.paths = map[string]bool{}
		}
		a.paths[condition.Path] = true
	}
	return a
}

func (a *anonymity) allows(path string) bool {
	return a.allowed && (a.paths == nil || a.paths[path])
}
