package rest_test

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/server/rest"
)

// mayNotCreate allows every verb but create, and records what it was asked.
type mayNotCreate struct {
	authorizer.AuthorizerFunc // what else an Authorizer has is not asked
	asked                     []authorizer.Attributes
}

func (m *mayNotCreate) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	m.asked = append(m.asked, a)
	if a.GetVerb() == "create" {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

// TestUpsertNeedsCreate: a user who may patch or update but not create cannot create an object by
// apply or update, also not as a dry run. The verb of the request itself is authorized before
// package rest.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#api-usage
func TestUpsertNeedsCreate(t *testing.T) {
	m := &mayNotCreate{}
	h := newHarness(t, rest.Options{Authorizer: m})
	const lease = `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"c"}}`
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	const config = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"}}`
	for _, row := range []struct{ name, method, path, body, media, resource string }{
		{"apply", http.MethodPatch, configMaps + "/c?fieldManager=me", config, "application/apply-patch+yaml", `"configmaps" in API group ""`},
		{"apply, dry run", http.MethodPatch, configMaps + "/c?fieldManager=me&dryRun=All", config, "application/apply-patch+yaml", `"configmaps" in API group ""`},
		{"update", http.MethodPut, leases + "/c", lease, "application/json", `"leases" in API group "coordination.k8s.io"`},
		{"update, dry run", http.MethodPut, leases + "/c?dryRun=All", lease, "application/json", `"leases" in API group "coordination.k8s.io"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			m.asked = nil
			h := *h
			h.t = t
			before := h.store.Revision()
			a := h.do(row.method, row.path, row.body, "Content-Type", row.media).want(403)
			resource := "configmaps"
			if row.method == http.MethodPut {
				resource = "leases.coordination.k8s.io"
			}
			want := resource + ` "c" is forbidden: User "tester" cannot create resource ` + row.resource + ` in the namespace "default"`
			if a.get("reason") != "Forbidden" || a.get("message") != want {
				t.Errorf("%s\nwant %s", a.body, want)
			}
			if h.store.Revision() != before {
				t.Error("something was stored")
			}
			if len(m.asked) != 1 || m.asked[0].GetName() != "c" || m.asked[0].GetNamespace() != "default" || !m.asked[0].IsResourceRequest() {
				t.Errorf("asked %+v", m.asked)
			}
		})
	}
}
