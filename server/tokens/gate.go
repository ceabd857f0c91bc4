package tokens

import (
	"context"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	apiserviceaccount "k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/sqlstore"
)

// lookTimeout bounds the wait for the database when an object or a key is not in memory.
const lookTimeout = 5 * time.Second

// gate lets a server validate tokens.
type gate struct{ store *sqlstore.Store }

// try is one validation of a token. Upstream's code carries it in its context to what it calls.
type try struct {
	look  func(context.Context) bool // fetches what the try may have missed; nil: it missed nothing
	after []func()                   // is called after the last try
}

type tryKey struct{}

// tryOf returns the try that ctx belongs to.
func tryOf(ctx context.Context) *try { return ctx.Value(tryKey{}).(*try) }

// pass calls validate. If it fails because of an object or a key that another server may have
// just written, pass waits for the store to have it and tries once more.
func (g *gate) pass(ctx context.Context, validate func(context.Context) error) error {
	t := &try{}
	err := validate(context.WithValue(ctx, tryKey{}, t))
	if err != nil && t.look != nil && t.look(ctx) {
		t = &try{}
		err = validate(context.WithValue(ctx, tryKey{}, t))
	}
	for _, f := range t.after {
		f()
	}
	return err
}

// sync waits until the store has everything that any server has written; it returns false if
// the database cannot be asked.
func (g *gate) sync(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := g.store.Sync(ctx)
	return err == nil
}

// gated validates claims of tokens whose signature was verified.
type gated[Claims any] struct {
	gate *gate
	serviceaccount.Validator[Claims]
}

// throughGate returns a gated v. It is a function because upstream does not export the type of
// the claims.
func throughGate[Claims any](g *gate, v serviceaccount.Validator[Claims]) serviceaccount.Validator[Claims] {
	return gated[Claims]{g, v}
}

// Validate implements serviceaccount.Validator.
func (v gated[Claims]) Validate(ctx context.Context, token string, public *jwt.Claims, private *Claims) (info *apiserviceaccount.ServiceAccountInfo, err error) {
	err = v.gate.pass(ctx, func(ctx context.Context) error {
		info, err = v.Validator.Validate(ctx, token, public, private)
		return err
	})
	return info, err
}

// gatedToken is for tokens of secrets, which upstream counts before it validates them.
type gatedToken struct {
	gate *gate
	authenticator.Token
}

// AuthenticateToken implements authenticator.Token.
func (t gatedToken) AuthenticateToken(ctx context.Context, token string) (r *authenticator.Response, ok bool, err error) {
	err = t.gate.pass(ctx, func(ctx context.Context) error {
		r, ok, err = t.Token.AuthenticateToken(ctx, token)
		return err
	})
	return r, ok, err
}

// gatedKeys look up keys inside the gate.
type gatedKeys struct{ *keys }

// GetPublicKeys implements serviceaccount.PublicKeysGetter.
func (k gatedKeys) GetPublicKeys(ctx context.Context, id string) []serviceaccount.PublicKey {
	found := k.keys.find(ctx, id)
	if len(found) == 0 {
		tryOf(ctx).look = k.keys.ask
	}
	return found
}
