package server

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"
)

// TestDisguises asks for a Secret of another namespace, by paths that one part of the server could
// read in another way than the next, and with headers that name another user, path or method.
func TestDisguises(t *testing.T) {
	p := openParties(t, Config{})
	const own, others = "b3duIHZhbHVl", "YW5vdGhlcidzIHZhbHVl"
	admin := clientOf(t, p.server)
	for namespace, value := range map[string]string{"team": own, "other": others} {
		admin.do("POST", "/api/v1/namespaces/"+namespace+"/secrets", `{"metadata":{"name":"db"},"data":{"k":"`+value+`"}}`, 201)
	}
	admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings", `{"metadata":{"name":"all"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"nobody"}]}`, 201)
	config := clientrest.AnonymousClientConfig(p.server.RESTConfig())
	certPEM, keyPEM, err := p.server.pki.Client("nobody", nil, time.Hour)
	must(t, err)
	config.CertData, config.KeyData = certPEM, keyPEM
	client, err := clientrest.HTTPClientFor(config)
	must(t, err)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	ask := func(method, target string, header http.Header) (int, string) {
		u, err := url.Parse(p.server.URL())
		must(t, err)
		u.Opaque = "//" + u.Host + target
		r := (&http.Request{Method: method, URL: u, Header: header, Host: u.Host}).WithContext(t.Context())
		resp, err := client.Do(r)
		must(t, err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	if code, body := ask("GET", "/api/v1/namespaces/team/secrets/db", nil); code != 200 || !strings.Contains(body, own) {
		t.Fatalf("in the own namespace: %d %s", code, body)
	}
	for _, target := range []string{
		"/api/v1/namespaces/other/secrets/db",
		"/api/v1/namespaces/other/secrets/db/",
		"/api/v1/namespaces/other/secrets/%64b",
		"/api/v1/namespaces/%6fther/secrets/db",
		"/%61pi/v1/namespaces/other/secrets/db",
		"//api/v1/namespaces/other/secrets/db",
		"/api//v1/namespaces/other/secrets/db",
		"/api/v1//namespaces/other/secrets/db",
		"/api/v1/namespaces//other/secrets/db",
		"/api/v1/namespaces/other//secrets/db",
		"/./api/v1/namespaces/other/secrets/db",
		"/healthz/../api/v1/namespaces/other/secrets/db",
		"/version/../api/v1/namespaces/other/secrets/db",
		"/healthz/%2e%2e/api/v1/namespaces/other/secrets/db",
		"/api/v1/namespaces/team/../other/secrets/db",
		"/api/v1/namespaces/team/%2e%2e/other/secrets/db",
		"/api/v1/namespaces/team%2f..%2fother/secrets/db",
		"/api/v1/namespaces/team/secrets/../../other/secrets/db",
		"/api/v1/namespaces/team/secrets/..%2f..%2fother%2fsecrets%2fdb",
		"/api/v1/namespaces/team%2fsecrets%2fdb%00/other/secrets/db",
		"/api/v1/namespaces/team;/../other/secrets/db",
		"/api/v1/namespaces/team/secrets/other/db",
		"/api/v1/namespaces/team/secrets/other%2fdb",
		"/api/v1/namespaces/team/secrets?fieldSelector=metadata.namespace%3Dother",
		"/api/v1/namespaces/team/secrets?namespace=other",
		"/api/v1/namespaces/other/secrets?fieldSelector=metadata.namespace%3Dteam",
		"/api/v1/secrets", "/api/v1/secrets/db", "/api/v1/watch/secrets?timeoutSeconds=1",
		"/api/v1/secrets?fieldSelector=metadata.namespace%3Dother",
		"/api/v1/watch/namespaces/other/secrets?timeoutSeconds=1",
		"/api/v1/watch/namespaces/team/../other/secrets/db?timeoutSeconds=1",
		"/api/v1/proxy/namespaces/other/secrets/db",
		"/api/v1/namespaces/team/services/https:kubernetes.default:443/proxy/api/v1/namespaces/other/secrets/db",
		"/API/v1/namespaces/other/secrets/db",
		"/api/v1/namespaces/other/SECRETS/db",
	} {
		for _, header := range []http.Header{
			nil,
			{"X-Remote-User": {"kubernetes-admin"}, "X-Remote-Group": {"system:masters"}},
			{"X-Forwarded-User": {"kubernetes-admin"}, "X-Original-Url": {"/api/v1/namespaces/team/secrets/db"}, "X-Rewrite-Url": {"/healthz"}},
			{"X-Http-Method-Override": {"GET"}, "X-Forwarded-Uri": {"/healthz"}, "X-Forwarded-Prefix": {"/api"}},
		} {
			for _, method := range []string{"GET", "POST", "HEAD"} {
				code, body := ask(method, target, header)
				if strings.Contains(body, others) || code >= 500 && !strings.Contains(body, "invalid key") {
					t.Errorf("%s %s with %v: %d %s", method, target, header, code, body)
				}
			}
		}
	}
}
