package tokens

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// newAuthenticator chains the kinds of tokens in upstream's order
// (kubeapiserver/authenticator): static ones, those of secrets, those that are asked for.
func (t *Tokens) newAuthenticator() (authenticator.Token, error) {
	var chain []authenticator.Token
	if t.o.TokenFile != "" {
		static, err := tokenfile.NewCSV(t.o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read static tokens: %w", err)
		}
		chain = append(chain, authenticator.WrapAudienceAgnosticToken(t.o.Audiences, static))
	}
	g := &gate{store: t.store}
	legacy, err := serviceaccount.NewLegacyValidator(true, getter{g}, &marks{gate: g, config: t.client})
	if err != nil {
		return nil, err
	}
	issued := throughGate(g, serviceaccount.NewValidator(getter{g}))
	chain = append(chain,
		gatedToken{g, serviceaccount.JWTTokenAuthenticator([]string{serviceaccount.LegacyIssuer}, gatedKeys{g, t.keys}, t.o.Audiences, legacy)},
		serviceaccount.JWTTokenAuthenticator(t.o.Issuers, t.keys, t.o.Audiences, issued))
	var all authenticator.Token = everybody{union.New(chain...)}
	if t.o.CacheFor > 0 {
		// Only good tokens are kept, so that memory is bounded by how many were handed out.
		all = cache.New(all, true, t.o.CacheFor, 0)
	}
	return all, nil
}

// everybody adds the group that everybody with good credentials is in. It does so here, so
// that what is cached is complete.
type everybody struct{ authenticator.Token }

func (e everybody) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	r, ok, err := e.Token.AuthenticateToken(ctx, token)
	if !ok || err != nil || slices.Contains(r.User.GetGroups(), user.AllAuthenticated) {
		return r, ok, err
	}
	who := &user.DefaultInfo{
		Name:   r.User.GetName(),
		UID:    r.User.GetUID(),
		Groups: append(slices.Clone(r.User.GetGroups()), user.AllAuthenticated),
		Extra:  r.User.GetExtra(),
	}
	return &authenticator.Response{Audiences: r.Audiences, User: who}, true, nil
}
