package tokens

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/fielderr"
)

// newChain returns the kinds of tokens in upstream's order
// (kubeapiserver/authenticator): static tokens, tokens of secrets, tokens of the TokenRequest
// API.
func (t *Tokens) newChain() ([]authenticator.Token, error) {
	var chain []authenticator.Token
	if t.o.TokenFile != "" {
		static, err := tokenfile.NewCSV(t.o.TokenFile)
		if err != nil {
			return nil, fielderr.Errorf("read static tokens (%v): %w", fielderr.Name("TokenFile"), err)
		}
		chain = append(chain, authenticator.WrapAudienceAgnosticToken(t.o.Audiences, static))
	}
	g := &gate{store: t.store}
	legacy, err := serviceaccount.NewLegacyValidator(true, getter{g}, &marks{config: t.client})
	if err != nil {
		return nil, err
	}
	issued := throughGate(g, serviceaccount.NewValidator(getter{g}))
	return append(chain,
		gatedToken{g, serviceaccount.JWTTokenAuthenticator([]string{serviceaccount.LegacyIssuer}, gatedKeys{t.keys}, t.o.Audiences, legacy)},
		serviceaccount.JWTTokenAuthenticator(t.o.Issuers, t.keys, t.o.Audiences, issued)), nil
}

// With returns what authenticates the tokens that t does, and then those that others do. What is
// found is remembered for a while.
func (t *Tokens) With(others ...authenticator.Token) authenticator.Token {
	// The group is added here, so that users that are remembered are complete.
	var all authenticator.Token = authn.Everybody{Token: union.New(slices.Concat(t.chain, others)...)}
	if t.o.CacheFor > 0 {
		// Only valid tokens are cached, so memory is bounded by the number of issued tokens.
		all = cache.New(all, true, t.o.CacheFor, 0)
	}
	return bounded{all}
}

// maxTokenBytes is longer than any token that is signed here, and than any header that common
// proxies let through.
const maxTokenBytes = 64 << 10

var errTooLong = errors.New("the token is too long")

// bounded does not look at tokens that are too long.
type bounded struct{ authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (b bounded) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if len(token) > maxTokenBytes {
		return nil, false, errTooLong
	}
	return b.Token.AuthenticateToken(ctx, token)
}
