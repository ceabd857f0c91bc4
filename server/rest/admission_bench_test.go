package rest_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/resolve"
	"github.com/plinth-io/plinth/server/rest"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
)

// BenchmarkWebhooks measures writes without the webhook plugins, with the plugins but no webhook
// configured, and with a webhook configured for another resource.
func BenchmarkWebhooks(b *testing.B) {
	for _, with := range []string{"without", "none", "another"} {
		h := newHarness(b, rest.Options{})
		h.do("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`).want(201)
		o := admission.WebhookOptions{
			Store: h.store, Client: &clientrest.Config{Host: h.http.URL}, Services: resolve.New(h.store, h.http.URL), Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		}
		chain := admission.Chain{admission.NewLifecycle(h.store)}
		if with != "without" {
			chain = append(chain, admission.NewMutatingWebhooks(o), admission.NewValidatingWebhooks(o))
		}
		if with == "another" {
			for _, kind := range []string{"Mutating", "Validating"} {
				h.do("POST", "/apis/admissionregistration.k8s.io/v1/"+strings.ToLower(kind)+"webhookconfigurations",
					`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"`+kind+`WebhookConfiguration","metadata":{"name":"a"},"webhooks":[{"name":"a.example.com",
					"clientConfig":{"url":"https://127.0.0.1:1/"},"sideEffects":"None","admissionReviewVersions":["v1"],
					"rules":[{"operations":["*"],"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]}]}]}`).want(201)
			}
		}
		h.api = rest.New(h.store, h.kinds, rest.Options{Admission: chain})
		send := func(method, path, media, body string, code int) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", media)
			if h.ServeHTTP(w, r); w.Code != code {
				b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		n := 0
		b.Run("create/"+with, func(b *testing.B) {
			for b.Loop() {
				send("POST", configMaps, "application/json", configMap(fmt.Sprint("a-", n), "value"), 201)
				n++
			}
		})
		b.Run("update/"+with, func(b *testing.B) {
			for b.Loop() {
				send("PUT", configMaps+"/a-0", "application/json", configMap("a-0", fmt.Sprint(n)), 200)
				n++
			}
		})
		b.Run("apply/"+with, func(b *testing.B) {
			send("PATCH", configMaps+"/b?fieldManager=m&force=true", "application/apply-patch+yaml", configMap("b", "value"), 201)
			for b.Loop() {
				send("PATCH", configMaps+"/b?fieldManager=m&force=true", "application/apply-patch+yaml", configMap("b", "value"), 200)
			}
			send("DELETE", configMaps+"/b", "application/json", "", 200)
		})
	}
}
