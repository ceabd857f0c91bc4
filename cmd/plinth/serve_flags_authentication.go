package main

import (
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/authn"
)

// addAuthenticationFlags adds kube-apiserver's flags about who sends a request, and about the
// certificates that clients are shown.
func addAuthenticationFlags(cmd *cobra.Command, c *server.Config) {
	f := cmd.Flags()
	c.Authentication = authn.NewOptions()
	authn.AddFlags(f, c.Authentication)
	for name, usage := range authenticationUsage {
		f.Lookup(name).Usage = usage
	}
	o := &c.Serving
	f.StringVar(&o.CertFile, "tls-cert-file", "", "`file` with the certificate to serve with, intermediate ones after it; read again when it changes; by default one signed by plinth's own authority")
	f.StringVar(&o.KeyFile, "tls-private-key-file", "", "`file` with the private key of --tls-cert-file")
	f.Var(cliflag.NewNamedCertKeyArray(&o.SNI), "tls-sni-cert-key", "files of another certificate and its key, `cert,key[:names]`, for clients that ask for one of the names, or of those in the certificate; read again when they change; repeat the flag for more")
	f.Lookup("tls-sni-cert-key").DefValue = ""
	f.StringVar(&o.MinVersion, "tls-min-version", "", "lowest `version` of TLS: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+"; by default VersionTLS12")
	f.StringSliceVar(&o.CipherSuites, "tls-cipher-suites", nil, "`names` of the cipher suites up to TLS 1.2, by Go's names, separated by commas; by default Go's choice")
	f.Int32SliceVar(&o.CurvePreferences, "tls-curve-preferences", nil, "`numbers` of the key exchange mechanisms, those of Go's tls.CurveID, in any order, separated by commas; by default Go's choice")
}

// authenticationUsage are texts for upstream's flags.
var authenticationUsage = map[string]string{
	"anonymous-auth":        "accept requests without credentials, as user system:anonymous in group system:unauthenticated",
	"authentication-config": "`file` with an AuthenticationConfiguration: issuers of JSON web tokens, and which paths anonymous requests may have; its issuers are read again when it changes; not with --oidc flags",
	"client-ca-file":        "`file` with authorities whose certificates identify clients, besides plinth's own: the common name is the user, the organizations are the groups; read again when it changes",

	"enable-bootstrap-token-auth": "accept the tokens in Secrets of type bootstrap.kubernetes.io/token in namespace kube-system, for nodes that join",

	"oidc-issuer-url":      "https `URL` of an OpenID Connect issuer whose tokens identify clients",
	"oidc-client-id":       "`audience` that tokens of --oidc-issuer-url must be for",
	"oidc-ca-file":         "`file` with the authorities of the issuer's own certificate; by default those of the system",
	"oidc-username-claim":  "`claim` that has the name of the user",
	"oidc-username-prefix": "`prefix` of the names of users, - for none; by default the URL of the issuer and #, but for the claim email",
	"oidc-groups-claim":    "`claim` that has the user's groups",
	"oidc-groups-prefix":   "`prefix` of the names of groups",
	"oidc-signing-algs":    "`algorithms` that tokens may be signed with, out of RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512",
	"oidc-required-claim":  "claim that a token must have, `name=value`; repeat the flag for more",

	"requestheader-client-ca-file":       "`file` with authorities of front proxies, whose requests name their users in headers; read again when it changes; by default there are no front proxies",
	"requestheader-allowed-names":        "common `names` that certificates of front proxies may have; by default any",
	"requestheader-username-headers":     "`headers` in which front proxies name the user, such as X-Remote-User",
	"requestheader-uid-headers":          "`headers` in which front proxies give the user's UID, such as X-Remote-Uid",
	"requestheader-group-headers":        "`headers` in which front proxies name the user's groups, such as X-Remote-Group",
	"requestheader-extra-headers-prefix": "`prefixes` of headers in which front proxies say more of the user, such as X-Remote-Extra-",

	"authentication-token-webhook-config-file": "kubeconfig `file` of a webhook that is asked whose a bearer token is, when nobody else knows it",
	"authentication-token-webhook-version":     "API `version` of TokenReviews for the webhook: v1 or v1beta1",
	"authentication-token-webhook-cache-ttl":   "how long answers of the webhook are used again",
}
