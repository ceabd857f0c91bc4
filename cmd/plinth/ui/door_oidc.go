package ui

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc"
	"golang.org/x/oauth2"
)

// OIDC is the provider that the server trusts (--oidc-issuer-url). The page is a public client of it: there is no secret,
// and a code is good only for the browser that has asked for it (RFC 7636, PKCE with S256).
type OIDC struct {
	Issuer   string // --oidc-issuer-url
	ClientID string // --oidc-client-id
	CAFile   string // --oidc-ca-file; empty: the authorities of this machine
}

// stateCookie is there while the visitor is at the provider. Coming back is a navigation from another site, for which
// browsers send cookies that are lax.
const stateCookie = "__Secure-plinth-ui-oidc"

// oidcState is what the browser keeps meanwhile.
type oidcState struct{ State, Nonce, Verifier, To string }

// longestSignIn is how long a visitor may take at the provider.
const longestSignIn = 10 * time.Minute

// client returns a context with which the provider is asked.
func (o *OIDC) client(ctx context.Context) (context.Context, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	transport.DisableKeepAlives = true // it is asked seldom
	return oidc.ClientContext(ctx, &http.Client{Transport: transport, Timeout: 15 * time.Second}), nil
}

// config asks the provider where it signs people in.
func (o *OIDC) config(ctx context.Context, back string) (*oauth2.Config, error) {
	provider, err := oidc.NewProvider(ctx, o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("ask the provider %s: %w", o.Issuer, err)
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams // a public client has no secret to show
	var has struct {
		Scopes []string `json:"scopes_supported"`
	}
	_ = provider.Claims(&has)
	scopes := []string{oidc.ScopeOpenID}
	for _, scope := range []string{"profile", "email", "groups"} {
		if slices.Contains(has.Scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return &oauth2.Config{ClientID: o.ClientID, Endpoint: endpoint, RedirectURL: back, Scopes: scopes}, nil
}

// back is the address to which the provider sends the visitor.
func (d *SignIn) back(r *http.Request) string { return "https://" + r.Host + d.base + "oidc/callback" }

// oidcStart sends a visitor to the provider.
func (d *SignIn) oidcStart(w http.ResponseWriter, r *http.Request) {
	ctx, err := d.oidc.client(r.Context())
	if err != nil {
		d.form(w, r, http.StatusBadGateway, err.Error(), "")
		return
	}
	config, err := d.oidc.config(ctx, d.back(r))
	if err != nil {
		d.form(w, r, http.StatusBadGateway, err.Error(), "")
		return
	}
	s := oidcState{secret(16), secret(16), oauth2.GenerateVerifier(), d.below(r.URL.Query().Get("to"))}
	text, _ := json.Marshal(s)
	d.keepState(w, base64.RawURLEncoding.EncodeToString(text), int(longestSignIn.Seconds()))
	http.Redirect(w, r, config.AuthCodeURL(s.State, oidc.Nonce(s.Nonce), oauth2.S256ChallengeOption(s.Verifier)), http.StatusFound)
}

func (d *SignIn) keepState(w http.ResponseWriter, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: stateCookie, Value: value, Path: d.base + "oidc/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// oidcCallback takes the code that the provider has given the visitor.
func (d *SignIn) oidcCallback(w http.ResponseWriter, r *http.Request) {
	s, ok := stateOf(r)
	d.keepState(w, "", -1)
	q := r.URL.Query()
	switch {
	case !ok || !same(q.Get("state"), s.State):
		d.form(w, r, http.StatusBadRequest, "This browser has not asked to sign in, or too long ago. Try again.", "")
		return
	case q.Get("error") != "":
		d.form(w, r, http.StatusUnauthorized, strings.TrimSpace("The provider says: "+q.Get("error")+" "+q.Get("error_description")), s.To)
		return
	}
	token, err := d.redeem(r, q.Get("code"), s)
	if err != nil {
		d.form(w, r, http.StatusBadGateway, err.Error(), "")
		return
	}
	if len(token) > longestToken {
		d.form(w, r, http.StatusBadGateway, "The provider's token is too long for a cookie; ask for fewer groups in it, or use kubectl and plinth ui.", s.To)
		return
	}
	d.admit(w, r, token, s.To)
}

func stateOf(r *http.Request) (s oidcState, ok bool) {
	c, err := r.Cookie(stateCookie)
	if err != nil {
		return s, false
	}
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	return s, err == nil && json.Unmarshal(text, &s) == nil && s.State != ""
}

// redeem returns the visitor's ID token. The API verifies it, as every token; that it was made for this sign-in is
// verified here, by its nonce.
func (d *SignIn) redeem(r *http.Request, code string, s oidcState) (string, error) {
	ctx, err := d.oidc.client(r.Context())
	if err != nil {
		return "", err
	}
	config, err := d.oidc.config(ctx, d.back(r))
	if err != nil {
		return "", err
	}
	answer, err := config.Exchange(ctx, code, oauth2.VerifierOption(s.Verifier))
	if err != nil {
		return "", fmt.Errorf("the provider does not take the code: %w", err)
	}
	token, _ := answer.Extra("id_token").(string)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("the provider has sent no ID token")
	}
	var claims struct{ Nonce string }
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil || !same(claims.Nonce, s.Nonce) {
		return "", fmt.Errorf("the provider's token was made for another sign-in")
	}
	return token, nil
}
