package main

import (
	"crypto/tls"
	"net/http"

	"github.com/plinth-io/plinth/cmd/plinth/ui"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/authn"
)

// uiFlag has the server serve the page.
func uiFlag(on *bool) Flag {
	return Flag{Name: "ui", Set: boolean(on, false), DropIn: dropIn{lacks: true},
		Help: "serve the page of plinth ui at " + server.PagePath + " to people who sign in there with a bearer token, a client certificate or, with --oidc-issuer-url, at the provider"}
}

// uiPage makes the page that --ui serves.
func uiPage(o *authn.Options) server.Page {
	return func(through func(*tls.ConnectionState) http.RoundTripper) http.Handler {
		return ui.New(ui.Options{Base: server.PagePath, Door: ui.NewSignIn(server.PagePath, through, uiOIDC(o))})
	}
}

// uiOIDC is the provider that flags name; nil: none. One that a file of authentication names is only for tokens.
func uiOIDC(o *authn.Options) *ui.OIDC {
	if o.OIDC == nil || o.OIDC.IssuerURL == "" {
		return nil
	}
	return &ui.OIDC{Issuer: o.OIDC.IssuerURL, ClientID: o.OIDC.ClientID, CAFile: o.OIDC.CAFile}
}
