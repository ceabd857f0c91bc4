package tokens

import (
	"context"
	"sync"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	apiserviceaccount "k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/sqlstore"
)

// lookTimeout bounds the wait for the database when an object or a key is not in memory.
const lookTimeout = 5 * time.Second

// validating is held while a token is validated, so that the process validates one at a time:
// upstream's code counts in package variables that are not safe for concurrent use
// (component-base/metrics.Counter.WithContext).
var validating sync.Mutex

// gate lets a server validate tokens. validating is not held during a wait for the database:
// such work is done before a second try, or after the last.
type gate struct {
	store *sqlstore.Store

	// Of one try, guarded by validating.
	look  func(context.Context) bool // fetches what the try may have missed; nil: it missed nothing
	after []func()                   // is called when validating is not held any more
}

// pass calls try. If try fails because of an object or a key that another server may have
// just written, pass waits for the store to have it and tries once more.
func (g *gate) pass(ctx context.Context, try func() error) error {
	look, after, err := g.once(try)
	if err != nil && look != nil && look(ctx) {
		_, after, err = g.once(try)
	}
	for _, f := range after {
		f()
	}
	return err
}

func (g *gate) once(try func() error) (look func(context.Context) bool, after []func(), err error) {
	validating.Lock()
	defer validating.Unlock()
	g.look, g.after = nil, nil
	err = try()
	return g.look, g.after, err
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
	err = v.gate.pass(ctx, func() error {
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
	err = t.gate.pass(ctx, func() error {
		r, ok, err = t.Token.AuthenticateToken(ctx, token)
		return err
	})
	return r, ok, err
}

// gatedKeys look up keys inside the gate.
type gatedKeys struct {
	gate *gate
	*keys
}

// GetPublicKeys implements serviceaccount.PublicKeysGetter.
func (k gatedKeys) GetPublicKeys(ctx context.Context, id string) []serviceaccount.PublicKey {
	found := k.keys.find(ctx, id)
	if len(found) == 0 {
		k.gate.look = k.keys.ask
	}
	return found
}
