package ui

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// SignIn is the Door of plinth serve --ui. Visitors show a client certificate, or sign in with a bearer token, which is
// kept in a cookie for this path of this host, or where OIDC is configured with the provider's token. The server keeps
// nothing of them.
type SignIn struct {
	base    string
	through func(*tls.ConnectionState) http.RoundTripper
	oidc    *OIDC // nil: not configured
}

// NewSignIn returns a door to the server whose API through asks.
func NewSignIn(base string, through func(*tls.ConnectionState) http.RoundTripper, oidc *OIDC) *SignIn {
	return &SignIn{base: base, through: through, oidc: oidc}
}

// tokenCookie has the visitor's token. Browsers send it over TLS only.
const tokenCookie = "__Secure-plinth-ui"

// inside stands for the server itself, which requests reach without a network.
const inside = "https://plinth.invalid"

// longestToken is what fits into a cookie.
const longestToken = 2900

func (d *SignIn) guard(r *http.Request) error { return nil } // TLS and the visitor's credentials are bound to the name of the server

func (d *SignIn) enter(r *http.Request) (string, *clientrest.Config, error) {
	if c, err := r.Cookie(tokenCookie); err == nil {
		token, err := base64.RawURLEncoding.DecodeString(c.Value)
		if err != nil || len(token) == 0 {
			return "", nil, errSignIn
		}
		return d.connection("token", token, d.withToken(string(token)))
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return d.connection("certificate", r.TLS.PeerCertificates[0].Raw, &clientrest.Config{Transport: d.through(r.TLS)})
	}
	return "", nil, errSignIn
}

// connection returns a configuration, and a key that tells nothing of the credentials.
func (d *SignIn) connection(kind string, credentials []byte, config *clientrest.Config) (string, *clientrest.Config, error) {
	sum := sha256.Sum256(credentials)
	config.Host = inside
	return kind + hex.EncodeToString(sum[:]), config, nil
}

func (d *SignIn) withToken(token string) *clientrest.Config {
	return &clientrest.Config{Host: inside, Transport: bearing{d.through(nil), token}}
}

// bearing adds a token to requests.
type bearing struct {
	next  http.RoundTripper
	token string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// signInPage is what somebody sees who is not signed in.
type signInPage struct {
	Base  string
	OIDC  bool
	Fault string
	To    string // the page that was asked for
}

func (d *SignIn) routes(s *Server) {
	s.mux.HandleFunc("POST /signin", d.signIn)
	s.mux.HandleFunc("POST /signout", d.signOut)
	if d.oidc != nil {
		s.mux.HandleFunc("GET /oidc/start", d.oidcStart)
		s.mux.HandleFunc("GET /oidc/callback", d.oidcCallback)
	}
}

func (d *SignIn) server(r *http.Request) string { return "https://" + r.Host }

func (d *SignIn) leave() string { return d.base + "signout" }

// welcome shows the form to those who are not known, and to those whose credentials are not valid any longer.
func (d *SignIn) welcome(w http.ResponseWriter, r *http.Request, err error) bool {
	if r.Method != http.MethodGet {
		return false
	}
	fault := ""
	if apierrors.IsUnauthorized(err) {
		fault = "Your credentials are not valid, or not any longer."
	}
	if len(r.CookiesNamed(tokenCookie)) > 0 {
		d.keep(w, "") // it is of no use, and goes before a certificate
	}
	d.form(w, r, http.StatusUnauthorized, fault, strings.TrimSuffix(d.base, "/")+r.URL.RequestURI())
	return true
}

// form shows the form, which leads to a page. One that is not below the base is not gone to.
func (d *SignIn) form(w http.ResponseWriter, r *http.Request, code int, fault, to string) {
	showBare(w, r, code, "signin.html", signInPage{d.base, d.oidc != nil, fault, d.below(to)})
}

// below is an address if it is of this page, and else that of its base.
func (d *SignIn) below(to string) string {
	if u, err := url.Parse(to); err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, d.base) || strings.Contains(to, "\\") {
		return d.base
	}
	return to
}

// signIn takes a token if the API knows whose it is.
func (d *SignIn) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	token, to := strings.TrimSpace(r.PostFormValue("token")), r.PostFormValue("to")
	switch {
	case token == "":
		d.form(w, r, http.StatusBadRequest, "Paste a token.", to)
		return
	case len(token) > longestToken:
		d.form(w, r, http.StatusBadRequest, "This is too long for a token.", to)
		return
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		d.form(w, r, http.StatusBadRequest, "A token is one word.", to)
		return
	}
	d.admit(w, r, token, to)
}

// admit lets the owner of a token in, and leads him to a page.
func (d *SignIn) admit(w http.ResponseWriter, r *http.Request, token, to string) {
	client, err := kubernetes.NewForConfig(d.withToken(token))
	if err == nil {
		_, err = client.AuthenticationV1().SelfSubjectReviews().Create(r.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsUnauthorized(err):
		d.form(w, r, http.StatusUnauthorized, "The server does not know this token. It may have ended.", to)
	case err != nil:
		e := explain(err)
		d.form(w, r, e.Code, e.Text, to)
	default:
		d.keep(w, token)
		showEntry(w, r, d.below(to))
	}
}

// keep gives the browser the cookie, or takes it away.
func (d *SignIn) keep(w http.ResponseWriter, token string) {
	c := &http.Cookie{
		Name: tokenCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(token)), Path: d.base,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func (d *SignIn) signOut(w http.ResponseWriter, r *http.Request) {
	d.keep(w, "")
	d.form(w, r, http.StatusOK, "", "")
}
