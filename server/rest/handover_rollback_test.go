package rest_test

import (
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
)

// TestRollback sends the rollback requests of kubectl up to 1.15, and wants the annotation that the
// controller of Deployments looks for.
func TestRollback(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"})
	if err != nil {
		t.Fatal(err)
	}
	aloneAndShared(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		h.t = t
		kinds := builtin.Kinds(builtin.Options{Store: h.store, Client: h.client(), Removed: all})
		h.kinds.Replace(h.kinds.Set().Kinds, kinds)
		const now = "/apis/apps/v1/namespaces/default/deployments"
		h.do("POST", now, `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":`+
			`{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`).want(201)
		for _, version := range []string{"extensions/v1beta1", "apps/v1beta1"} {
			ask := func(name, query, rest string, code int) answer {
				t.Helper()
				return h.do("POST", "/apis/"+version+"/namespaces/default/deployments/"+name+"/rollback"+query,
					`{"kind":"DeploymentRollback","apiVersion":"`+version+`",`+rest+`}`).want(code)
			}
			wished := func() string {
				t.Helper()
				return h.do("GET", now+"/a", "").want(200).get("metadata", "annotations", "deprecated.deployment.rollback.to")
			}
			before := wished()
			ask("a", "?dryRun=All", `"name":"a","rollbackTo":{"revision":7}`, 201)
			ask("a", "", `"name":"b","rollbackTo":{"revision":7}`, 400)
			ask("a", "", `"name":"a","rollbackTo":{"revision":-7}`, 422)
			ask("b", "", `"name":"b","rollbackTo":{"revision":7}`, 404)
			if got := wished(); got != before {
				t.Errorf("%s: the annotation is %q", version, got)
			}
			revision := map[string]string{"extensions/v1beta1": "2", "apps/v1beta1": "0"}[version]
			done := ask("a", "", `"name":"a","updatedAnnotations":{"by":"`+version+`"},"rollbackTo":{"revision":`+revision+`}`, 201)
			if done.get("message") != `rollback request for deployment "a" succeeded` || done.get("code") != "200" {
				t.Errorf("%s: %s", version, done.body)
			}
			by := h.do("GET", now+"/a", "").get("metadata", "annotations", "by")
			if got := wished(); got != revision || by != version {
				t.Errorf("%s: the annotations are %q and %q", version, got, by)
			}
		}
		h.do("POST", "/apis/apps/v1beta2/namespaces/default/deployments/a/rollback", `{}`).want(404)
		h.do("POST", now+"/a/rollback", `{}`).want(404)
	})
}
