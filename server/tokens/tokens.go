package tokens

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/sqlstore"
)

// Tokens signs and authenticates the tokens of one server. Its methods are safe for
// concurrent use.
type Tokens struct {
	o      Options
	store  *sqlstore.Store
	client *clientrest.Config

	key            any // private
	issuer, legacy serviceaccount.TokenGenerator
	keys           *keys
	chain          []authenticator.Token
}

// Open reads the files that o names and, on a shared database, publishes the public half of
// the key that signs. own makes or reads the server's own private key; it is not called if o
// names a key file. store has the objects that tokens depend on. client marks secrets whose
// tokens are used.
func Open(ctx context.Context, o Options, own func() (any, error), store *sqlstore.Store, shared bool, client *clientrest.Config) (*Tokens, error) {
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
	if t.chain, err = t.newChain(); err != nil {
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
		return nil, fielderr.Errorf("read the key that signs tokens (%v): %w", fielderr.Name("SigningKeyFile"), err)
	}
	return key, nil
}

// Issuer signs the tokens of the TokenRequest API, in the name of the first issuer.
func (t *Tokens) Issuer() serviceaccount.TokenGenerator { return t.issuer }

// Legacy signs the tokens in secrets, which never expire.
func (t *Tokens) Legacy() serviceaccount.TokenGenerator { return t.legacy }

// Audiences returns the names of the API as an audience.
func (t *Tokens) Audiences() authenticator.Audiences { return t.o.Audiences }

// Issuers returns the accepted issuers of tokens.
func (t *Tokens) Issuers() []string { return t.o.Issuers }

// MaxExpiration bounds the life of requested tokens; 0: no bound.
func (t *Tokens) MaxExpiration() time.Duration { return t.o.MaxExpiration }

// ExtendExpiration tells whether the tokens of kubelets live longer than requested.
func (t *Tokens) ExtendExpiration() bool { return *t.o.ExtendExpiration }
