package authz

import (
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// check asks about a request, and returns the message of the refusal.
func check(t *testing.T, a *Authorizer, who user.Info, method, path string) string {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	info, err := paths.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	what := Attributes(who, info)
	decision, reason, err := a.Authorize(r.Context(), what)
	if err != nil {
		t.Error(err)
	}
	if decision == authorizer.DecisionAllow {
		return ""
	}
	return responsewriters.ForbiddenStatusError(what, reason).Error()
}

// What everybody may do by upstream's bootstrap roles, and the words of refusals.
func TestBootstrapRights(t *testing.T) {
	store := openStore(t)
	bootstrap(t, store)
	a := newAuthorizer(t, store, nil)
	tests := []struct {
		who          user.Info
		method, path string
		want         string // message of the 403
	}{
		{root, "GET", "/api", ""},
		{root, "DELETE", "/apis/apps/v1/namespaces/n/deployments/d", ""},
		{root, "GET", "/metrics", ""},
		{nobody, "GET", "/healthz", ""},
		{nobody, "GET", "/livez", ""},
		{nobody, "GET", "/readyz", ""},
		{nobody, "GET", "/version", ""},
		{nobody, "POST", "/version", `forbidden: User "system:anonymous" cannot post path "/version"`},
		{nobody, "GET", "/healthz/ping", `forbidden: User "system:anonymous" cannot get path "/healthz/ping"`},
		{nobody, "GET", "/readyzz", `forbidden: User "system:anonymous" cannot get path "/readyzz"`},
		{nobody, "GET", "/", `forbidden: User "system:anonymous" cannot get path "/"`},
		{nobody, "GET", "/api", `forbidden: User "system:anonymous" cannot get path "/api"`},
		{nobody, "GET", "/metrics", `forbidden: User "system:anonymous" cannot get path "/metrics"`},
		{nobody, "GET", "/openapi/v3", `forbidden: User "system:anonymous" cannot get path "/openapi/v3"`},
		{nobody, "GET", "/api/v1/namespaces/default/pods",
			`pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"`},
		{nobody, "GET", "/api/v1/nodes?watch=1",
			`nodes is forbidden: User "system:anonymous" cannot watch resource "nodes" in API group "" at the cluster scope`},
		{ada, "PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale",
			`deployments.apps "d" is forbidden: User "ada" cannot patch resource "deployments/scale" in API group "apps" in the namespace "n"`},
		{ada, "GET", "/version", ""},
		{ada, "GET", "/api", ""},
		{ada, "GET", "/apis/apps/v1", ""},
		{ada, "GET", "/openapi/v3/apis/apps/v1", ""},
		{ada, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", ""},
		{ada, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ""},
		{ada, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", ""},
		{ada, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
			`tokenreviews.authentication.k8s.io is forbidden: User "ada" cannot create resource "tokenreviews" in API group "authentication.k8s.io" at the cluster scope`},
		{ada, "GET", "/openid/v1/jwks", `forbidden: User "ada" cannot get path "/openid/v1/jwks"`},
		{nobody, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
			`selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope`},
		{robot, "GET", "/openid/v1/jwks", ""},
		{robot, "GET", "/.well-known/openid-configuration", ""},
		{robot, "PUT", "/openid/v1/jwks", `forbidden: User "system:serviceaccount:n:robot" cannot put path "/openid/v1/jwks"`},
		{robot, "GET", "/api/v1/namespaces/n/pods",
			`pods is forbidden: User "system:serviceaccount:n:robot" cannot list resource "pods" in API group "" in the namespace "n"`},
		{person("system:kube-scheduler"), "GET", "/api/v1/pods", ""},
		{person("system:kube-scheduler"), "GET", "/api/v1/secrets",
			`secrets is forbidden: User "system:kube-scheduler" cannot list resource "secrets" in API group "" at the cluster scope`},
		{account("kube-system", "namespace-controller"), "DELETE", "/api/v1/namespaces/n/pods", ""},
		{account("elsewhere", "namespace-controller"), "DELETE", "/api/v1/namespaces/n/pods",
			`pods is forbidden: User "system:serviceaccount:elsewhere:namespace-controller" cannot deletecollection resource "pods" in API group "" in the namespace "n"`},
		{person("mon", user.MonitoringGroup), "GET", "/metrics", ""},
	}
	for _, tt := range tests {
		if got := check(t, a, tt.who, tt.method, tt.path); got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.method, tt.path, got, tt.want)
		}
	}
}

// Selectors are attributes of a list, a watch and the deletion of a collection, also if they
// cannot be parsed.
func TestSelectorAttributes(t *testing.T) {
	for _, tt := range []struct {
		method, query  string
		fields, labels int
		fails          bool
	}{
		{"GET", "", 0, 0, false},
		{"GET", "fieldSelector=spec.nodeName%3Da", 1, 0, false},
		{"GET", "fieldSelector=spec.nodeName%3Da,metadata.name!%3Db&labelSelector=x", 2, 1, false},
		{"GET", "watch=1&labelSelector=x+in+(a,b),!y", 0, 2, false},
		{"DELETE", "labelSelector=x%3Da", 0, 1, false},
		{"POST", "labelSelector=x%3Da", 0, 0, false},
		{"GET", "labelSelector=x+in", 0, 0, true},
		{"GET", "fieldSelector=x", 0, 0, true},
	} {
		info, err := paths.NewRequestInfo(httptest.NewRequest(tt.method, "/api/v1/namespaces/n/pods?"+tt.query, nil))
		if err != nil {
			t.Fatal(err)
		}
		a := Attributes(ada, info)
		fields, ferr := a.GetFieldSelector()
		labels, lerr := a.GetLabelSelector()
		if len(fields) != tt.fields || len(labels) != tt.labels || (ferr != nil || lerr != nil) != tt.fails {
			t.Errorf("%s ?%s: fields %v, %v; labels %v, %v", tt.method, tt.query, fields, ferr, labels, lerr)
		}
	}
}
