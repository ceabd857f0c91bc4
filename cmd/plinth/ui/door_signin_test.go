package ui

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
)

// signInServer is a server with the page, as plinth serve --ui runs it.
type signInServer struct {
	*testing.T
	*server.Server
	admin *kubernetes.Clientset
}

func startSignIn(t *testing.T, oidc *OIDC, change func(*server.Config)) *signInServer {
	t.Helper()
	c := server.Config{Controllers: []string{}, Page: func(through func(*tls.ConnectionState) http.RoundTripper) http.Handler {
		return New(Options{Base: server.PagePath, Door: NewSignIn(server.PagePath, through, oidc)})
	}}
	if change != nil {
		change(&c)
	}
	s := server.New(c)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &signInServer{t, s, kubernetes.NewForConfigOrDie(s.RESTConfig())}
}

// token makes a service account that may do nothing, and returns a token of it.
func (s *signInServer) token(name string) string {
	s.Helper()
	accounts := s.admin.CoreV1().ServiceAccounts("default")
	if _, err := accounts.Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	request, err := accounts.CreateToken(s.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return request.Status.Token
}

// visitor is a browser without scripts. With certificate it shows that of the admin.
type visitor struct {
	s *signInServer
	*http.Client
}

func (s *signInServer) visitor(certificate bool) *visitor {
	s.Helper()
	config := s.RESTConfig()
	if !certificate {
		config = clientrest.AnonymousClientConfig(config)
	}
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		s.Fatal(err)
	}
	client.Jar, _ = cookiejar.New(nil)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &visitor{s, client}
}

// page asks for a page, or posts a form, and returns the status and what it says.
func (v *visitor) page(path string, form url.Values, headers ...string) (int, string, http.Header) {
	v.s.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(v.s.Context(), method, v.s.URL()+path, body)
	if err != nil {
		v.s.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := v.Do(r)
	if err != nil {
		v.s.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), answer.Header
}

// expect fails the test if a page does not answer with a status and some texts.
func (v *visitor) expect(code int, path string, form url.Values, texts ...string) string {
	v.s.Helper()
	got, text, _ := v.page(path, form)
	if got != code {
		v.s.Errorf("%s: status %d, not %d: %s", path, got, code, text)
	}
	for _, want := range texts {
		if !strings.Contains(text, want) {
			v.s.Errorf("%s lacks %q: %s", path, want, text)
		}
	}
	return text
}

// TestSignIn: a visitor is who his token or his certificate says, and nobody without either sees a page.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, nil, nil)
	token := s.token("ann")

	v := s.visitor(false)
	if code, _, h := v.page("/", nil); code != http.StatusFound || h.Get("Location") != server.PagePath {
		t.Errorf("a browser at / gets %d to %q", code, h.Get("Location"))
	}
	if code, text, _ := v.page("/", nil, "Accept", "application/json"); code != http.StatusForbidden || !strings.Contains(text, `"kind":"Status"`) {
		t.Errorf("a client at / gets %d %s", code, text)
	}
	for _, path := range []string{"/ui/", "/ui/kinds/configmaps", "/ui/rows/secrets", "/ui/objects/configmaps/default/a", "/ui/?token=" + token, "/ui/kinds/pods?access_token=" + token} {
		v.expect(http.StatusUnauthorized, path, nil, "Bearer token")
	}
	v.expect(http.StatusUnauthorized, "/ui/signin", url.Values{"token": {"no-such-token"}}, "does not know this token")
	v.expect(http.StatusBadRequest, "/ui/signin", url.Values{"token": {""}}, "Paste a token")
	v.expect(http.StatusBadRequest, "/ui/signin", url.Values{"token": {"a b"}}, "one word")
	v.expect(http.StatusBadRequest, "/ui/signin", url.Values{"token": {strings.Repeat("a", 5000)}}, "too long")

	code, text, h := v.page("/ui/signin", url.Values{"token": {token}})
	cookie := h.Get("Set-Cookie")
	for _, want := range []string{"__Secure-plinth-ui=", "Path=/ui/", "Secure", "HttpOnly", "SameSite=Strict"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if code != http.StatusOK || strings.Contains(text, token) {
		t.Errorf("signing in answers %d: %s", code, text)
	}
	v.expect(http.StatusOK, "/ui/", nil, "system:serviceaccount:default:ann")
	v.expect(http.StatusForbidden, "/ui/rows/secrets", nil, "system:serviceaccount:default:ann", "cannot list resource") // RBAC decides, and its words are shown
	v.expect(http.StatusOK, "/ui/signout", url.Values{}, "Bearer token")
	v.expect(http.StatusUnauthorized, "/ui/", nil, "Bearer token")

	s.visitor(true).expect(http.StatusOK, "/ui/rows/secrets", nil, `"columns"`)
	s.visitor(true).expect(http.StatusOK, "/ui/", nil, "kubernetes-admin")
}

// TestSignInEnds: the owner of a token that is not valid, or not any longer, is asked to sign in, and loses the cookie.
func TestSignInEnds(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, nil, nil)
	v := s.visitor(false)
	ended := base64.RawURLEncoding.EncodeToString([]byte("ended.token"))
	code, text, h := v.page("/ui/objects/configmaps/default/a", nil, "Cookie", tokenCookie+"="+ended)
	if code != http.StatusUnauthorized || !strings.Contains(text, "not valid, or not any longer") || !strings.Contains(h.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("%d, cookie %q: %s", code, h.Get("Set-Cookie"), text)
	}
	v.page("/ui/objects/configmaps/default/a", nil, "Cookie", tokenCookie+"=%%%") // no text at all
}

// TestSignInRights: what the page shows and writes is what its visitor may, and is noted as his.
func TestSignInRights(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, nil, nil)
	token := s.token("ann")
	reader := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}}
	if _, err := s.admin.RbacV1().Roles("default").Create(t.Context(), reader, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ann"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "ann", Namespace: "default"}},
	}
	if _, err := s.admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	v := s.visitor(false)
	v.page("/ui/signin", url.Values{"token": {token}})
	v.expect(http.StatusOK, "/ui/rows/configmaps?ns=default", nil, `"columns"`)
	v.expect(http.StatusForbidden, "/ui/rows/configmaps?ns=kube-system", nil, "cannot list resource")
	v.expect(http.StatusForbidden, "/ui/rows/secrets?ns=default", nil, "cannot list resource")
	// What a browser could send besides counts for nothing.
	code, text, _ := v.page("/ui/rows/secrets?ns=default", nil, "Impersonate-User", "kubernetes-admin", "Impersonate-Group", "system:masters", "X-Remote-User", "root")
	if code != http.StatusForbidden || !strings.Contains(text, "system:serviceaccount:default:ann") {
		t.Errorf("with headers of others: %d %s", code, text)
	}
}

// TestForeignRequests: another page cannot have a visitor's browser send anything, or show the page within it.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, nil, nil)
	v := s.visitor(true)
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example.com"},
		{"Origin", "null"},
	} {
		if code, text, _ := v.page("/ui/signout", url.Values{}, headers...); code != http.StatusForbidden || !strings.Contains(text, "another page") {
			t.Errorf("%v: %d %s", headers, code, text)
		}
	}
	_, _, h := v.page("/ui/", nil)
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'self'", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		if !strings.Contains(h.Get(name), want) {
			t.Errorf("%s is %q", name, h.Get(name))
		}
	}
	if csp := h.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("the policy is %q", csp)
	}
}

// TestNoPage: without --ui a browser reads what to run, and there is no page.
func TestNoPage(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, nil, func(c *server.Config) { c.Page = nil })
	v := s.visitor(false)
	v.expect(http.StatusOK, "/", nil, "plinth ui")
	v.expect(http.StatusForbidden, "/ui/", nil, `"kind": "Status"`)
}

// TestSignInLeadsOn: whoever follows a link from elsewhere gets to that page, after signing in if need be, and to no other site.
func TestSignInLeadsOn(t *testing.T) {
	t.Parallel()
	s := startSignIn(t, nil, nil)
	v := s.visitor(false)
	const link = "/ui/kinds/configmaps?labels=a%3Db&ns=default"
	_, text, _ := v.page(link, nil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	if want := `content="0; url=/ui/kinds/configmaps?labels=a%3Db&amp;ns=default"`; !strings.Contains(text, want) {
		t.Errorf("a link from elsewhere is answered without %s: %s", want, text)
	}
	v.expect(http.StatusUnauthorized, link, nil, `name="to" value="/ui/kinds/configmaps?labels=a%3Db&amp;ns=default"`)
	token := s.token("ann")
	v.expect(http.StatusOK, "/ui/signin", url.Values{"token": {token}, "to": {link}}, `url=/ui/kinds/configmaps?labels=a%3Db&amp;ns=default"`)
	for _, to := range []string{"https://evil.example.com/ui/", "//evil.example.com/ui/", "/\\evil.example.com", "/ui/../../evil", "javascript:alert(1)", "/other"} {
		_, text, _ := v.page("/ui/signin", url.Values{"token": {token}, "to": {to}})
		if !strings.Contains(text, `url=/ui/"`) && !strings.Contains(text, `url=/ui/../../evil"`) { // which is of this server, and not there
			t.Errorf("%s leads to %s", to, text)
		}
	}
}
