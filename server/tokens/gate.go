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

// lookTimeout bounds the wait for the database when something is not in memory.
const lookTimeout = 5 * time.Second

// validating lets one token at a time be validated in the whole process: upstream's code
// counts in variables of its package which are not for several at once
// (component-base/metrics.Counter.WithContext).
var validating sync.Mutex

// gate is a server's way to validate tokens. validating is not held while somebody waits for
// the database: what takes that is done before a second try, or afterwards.
type gate struct {
	store *sqlstore.Store

	// Of one try, guarded by validating.
	look  func(context.Context) bool // finds what the try may have missed; nil: it looked for nothing
	after []func()                   // is called when the gate is open again
}

// pass calls try. If it fails over an object or a key, which another server may have just
// made or made anew, the store is given the time to hear of it for one more try.
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

// sync tells whether the store has everything that was written anywhere.
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

// throughGate is gated of whatever type of claims a validator has, which upstream does not export.
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

// gatedToken is for tokens of secrets, which are counted before they are validated.
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

// gatedKeys are keys that are looked for inside the gate.
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
