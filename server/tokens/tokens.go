package tokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/sqlstore"
)

// Tokens is what one server knows of tokens. Its methods are safe for concurrent use.
type Tokens struct {
	o      Options
	store  *sqlstore.Store
	client *rest.Config

	key            any // private
	issuer, legacy serviceaccount.TokenGenerator
	keys           *keys
	auth           authenticator.Token
}

// Open reads the files that o names and, on a shared database, publishes the public key
// that belongs to the one that signs. own makes or reads the server's own private key; it
// is not called if o names another. store has the objects that tokens depend on, and
// client reaches the API for the mark on secrets whose tokens are used.
func Open(ctx context.Context, o Options, own func() (any, error), store *sqlstore.Store, shared bool, client *rest.Config) (*Tokens, error) {
	t := &Tokens{o: o.withDefaults(), store: store, client: client}
	var err error
	if t.key, err = t.signingKey(own); err != nil {
		return nil, err
	}
	if t.issuer, err = serviceaccount.JWTTokenGenerator(t.o.Issuers[0], t.key); err != nil {
		return nil, fmt.Errorf("the key that signs tokens: %w", err)
	}
	if t.legacy, err = serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, t.key); err != nil {
		return nil, fmt.Errorf("the key that signs tokens: %w", err)
	}
	if t.keys, err = t.openKeys(shared); err != nil {
		return nil, err
	}
	if t.auth, err = t.newAuthenticator(); err != nil {
		return nil, err
	}
	if shared {
		err = t.Publish(ctx)
	}
	return t, err
}

func (t *Tokens) signingKey(own func() (any, error)) (any, error) {
	if t.o.SigningKeyFile == "" {
		return own()
	}
	key, err := keyutil.PrivateKeyFromFile(t.o.SigningKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key that signs tokens: %w", err)
	}
	return key, nil
}

// Issuer signs tokens in the name of the first issuer.
func (t *Tokens) Issuer() serviceaccount.TokenGenerator { return t.issuer }

// Legacy signs the tokens in secrets, which never end.
func (t *Tokens) Legacy() serviceaccount.TokenGenerator { return t.legacy }

// Audiences are what the API calls itself.
func (t *Tokens) Audiences() authenticator.Audiences { return t.o.Audiences }

// MaxExpiration bounds the life of tokens that are asked for; 0: nothing does.
func (t *Tokens) MaxExpiration() time.Duration { return t.o.MaxExpiration }

// ExtendExpiration tells whether the tokens of kubelets live for longer than they say.
func (t *Tokens) ExtendExpiration() bool { return *t.o.ExtendExpiration }

// maxTokenBytes is more than any token that is signed here, and than any header that
// common proxies let through.
const maxTokenBytes = 64 << 10

var errTooLong = errors.New("the token is too long")

// AuthenticateToken implements authenticator.Token.
func (t *Tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if len(token) > maxTokenBytes {
		return nil, false, errTooLong
	}
	return t.auth.AuthenticateToken(ctx, token)
}
