package builtin_test

import (
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestCheckStored: what each kind stores today is fine, in all its versions, and so is what is not Kubernetes' own. Of
// the rest the error says what it is, and what to do.
func TestCheckStored(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		key := k.Key("default", "a")
		for _, v := range append(k.Versions, kind.Version{Name: k.Stored.Version}) {
			gvk := k.GVK(v.Name)
			gvk.Group = k.Stored.Group
			if err := builtin.CheckStored(key, append(kind.HeadOf(gvk), `"metadata":{"name":"a","namespace":"default"}}`...)); err != nil && k.Stored.Group == k.Group {
				t.Errorf("%s: %v", gvk, err)
			}
		}
	}
	const gone = ", which Kubernetes " + kind.Major + "." + kind.Minor + " does not know: it stays, and cannot be served; write it again in another version, or delete it (docs/releases.md)"
	for _, c := range []struct{ key, value, want string }{
		{"/registry/storagemigration.k8s.io/storageversionmigrations/a", `{"kind":"StorageVersionMigration","apiVersion":"storagemigration.k8s.io/v1alpha1","metadata":{"name":"a"}}`,
			"StorageVersionMigration a is stored in storagemigration.k8s.io/v1alpha1" + gone},
		{"/registry/resource.k8s.io/resourceclaims/x/a", `{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1alpha3","metadata":{"name":"a","namespace":"x"}}`,
			"ResourceClaim x/a is stored in resource.k8s.io/v1alpha3" + gone},
		{"/registry/policy/podsecuritypolicies/a", `{"kind":"PodSecurityPolicy","apiVersion":"policy/v1beta1","metadata":{"name":"a"}}`,
			"PodSecurityPolicy a is stored in policy/v1beta1" + gone},
		{"/registry/apps/deployments/x/a", `{"kind":"Deployment","spec":{"a":",\"apiVersion\":\"apps/v1\""},"metadata":{"name":"a","namespace":"x"},"apiVersion":"apps\/v1alpha9"}`,
			"Deployment x/a is stored in apps/v1alpha9" + gone},
		{"/registry/apiextensions.k8s.io/customresourcedefinitions/a", `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1alpha1","metadata":{"name":"a"}}`,
			"CustomResourceDefinition a is stored in apiextensions.k8s.io/v1alpha1" + gone},
		{"/registry/autoscaling/horizontalpodautoscalers/x/a", `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"x"}}`, ""},
		{"/registry/gateway.networking.k8s.io/gateways/x/a", `{"kind":"Gateway","apiVersion":"gateway.networking.k8s.io/v1alpha1","metadata":{"name":"a","namespace":"x"}}`, ""},
		{"/registry/_plinth/nodeports/1", `{"kind":"NodePort","apiVersion":"_plinth/v1","metadata":{"name":"1"}}`, ""},
	} {
		got := ""
		if err := builtin.CheckStored(c.key, []byte(c.value)); err != nil {
			got = err.Error()
		}
		if got != c.want || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", c.key, got, c.want)
		}
	}
}
