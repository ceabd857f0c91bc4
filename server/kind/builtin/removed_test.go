package builtin_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// notResources are types of removed versions that are not served: most are bodies of something else.
var notResources = map[schema.GroupVersionKind]string{
	{Group: "admission.k8s.io", Version: "v1beta1", Kind: "AdmissionReview"}:        "what webhooks are asked with, in whatever version they want",
	{Group: "apiextensions.k8s.io", Version: "v1beta1", Kind: "ConversionReview"}:   "likewise",
	{Group: "apps", Version: "v1beta1", Kind: "DeploymentRollback"}:                 "of deployments/rollback",
	{Group: "apps", Version: "v1beta1", Kind: "Scale"}:                              "of scale subresources",
	{Group: "apps", Version: "v1beta2", Kind: "Scale"}:                              "of scale subresources",
	{Group: "extensions", Version: "v1beta1", Kind: "DeploymentRollback"}:           "of deployments/rollback",
	{Group: "extensions", Version: "v1beta1", Kind: "Scale"}:                        "of scale subresources",
	{Group: "certificates.k8s.io", Version: "v1alpha1", Kind: "ClusterTrustBundle"}: "an alpha version behind a feature gate",
	{Group: "policy", Version: "v1beta1", Kind: "Eviction"}:                         "of pods/eviction, which takes it in any case",
}

type removedType interface{ APILifecycleRemoved() (major, minor int) }

// TestRemovedIsComplete: every type that was removed from 1.16 on can be served, or is not
// a resource.
func TestRemovedIsComplete(t *testing.T) {
	served := map[schema.GroupVersionKind]builtin.Removed{}
	for _, r := range removed(t, "all") {
		served[r.GVK] = r
	}
	found, newest := 0, minor(t)
	for _, scheme := range builtin.Schemes() {
		for gvk := range scheme.AllKnownTypes() {
			obj, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			gone, ok := obj.(removedType)
			if !ok || meta.IsListType(obj) {
				continue
			}
			if _, minor := gone.APILifecycleRemoved(); minor > newest {
				continue
			}
			found++
			if _, ok := served[gvk]; ok == (notResources[gvk] != "") {
				t.Errorf("%v: served %v, no resource: %q", gvk, ok, notResources[gvk])
			}
		}
	}
	if found < 50 {
		t.Errorf("found only %d types", found)
	}
}

// TestRemovedReplacements compares the table with what the types say.
func TestRemovedReplacements(t *testing.T) {
	for _, r := range removed(t, "all") {
		obj := newOf(t, r.GVK)
		if r.Since < 16 || r.Since > minor(t) {
			t.Errorf("%v: removed in 1.%d", r.GVK, r.Since)
		}
		if gone, ok := obj.(removedType); ok {
			if _, minor := gone.APILifecycleRemoved(); minor != r.Since {
				t.Errorf("%v: removed in 1.%d, its type says 1.%d", r.GVK, r.Since, minor)
			}
		}
		next, ok := obj.(interface {
			APILifecycleReplacement() schema.GroupVersionKind
		})
		if !ok {
			continue
		}
		now := next.APILifecycleReplacement()
		now.Kind = strings.TrimSuffix(now.Kind, "List") // as that of networking.k8s.io/v1beta1 IngressClass has it
		if now.Group != r.Now.Group || now.Kind != r.Now.Kind {
			t.Errorf("%v: replaced by %v, its type says %v", r.GVK, r.Now, now)
		}
	}
}

// minor is the release that removed versions last.
func minor(t *testing.T) int {
	t.Helper()
	minor, err := strconv.Atoi(kind.Minor)
	if err != nil {
		t.Fatal(err)
	}
	return minor
}

func newOf(t *testing.T, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	for _, scheme := range builtin.Schemes() {
		if obj, err := scheme.New(gvk); err == nil {
			return obj
		}
	}
	t.Fatalf("no type %v", gvk)
	return nil
}

func removed(t *testing.T, names ...string) []builtin.Removed {
	t.Helper()
	all, err := builtin.RemovedAPIs(names)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRemovedAPIs(t *testing.T) {
	if all, err := builtin.RemovedAPIs(nil); err != nil || len(all) != 0 {
		t.Errorf("without a name: %v, %v", all, err)
	}
	for _, c := range []struct{ names, want, err string }{
		{"", "", `removed API "": write all, a VERSION`},
		{",", "", `removed API "": write all`},
		{"batch/v1beta1, ", "", `removed API "": write all`},
		{"batch/v1beta1", "batch/v1beta1/cronjobs", ""},
		{" policy/v1beta1 ,batch/v1beta1", "batch/v1beta1/cronjobs policy/v1beta1/poddisruptionbudgets", ""},
		{"extensions/v1beta1/ingresses", "extensions/v1beta1/ingresses", ""},
		{"networking.k8s.io/v1beta1,networking.k8s.io/v1beta1/ingresses", "networking.k8s.io/v1beta1/ingressclasses networking.k8s.io/v1beta1/ingresses networking.k8s.io/v1beta1/ipaddresses networking.k8s.io/v1beta1/servicecidrs", ""},
		{"apps/v1", "", `removed API "apps/v1": write all, a VERSION, or VERSION/RESOURCE as in extensions/v1beta1/ingresses; the versions are admissionregistration.k8s.io/v1alpha1, `},
		{"extensions", "", `removed API "extensions": write all`},
		{"batch/v1beta1/jobs", "", `removed API "batch/v1beta1/jobs": write all`},
		{"policy/v1beta1/podsecuritypolicies", "", `removed API "policy/v1beta1/podsecuritypolicies" cannot be served: it has no successor`},
		{"autoscaling/v2beta2", "", `removed API "autoscaling/v2beta2" cannot be served: its types are gone`},
		{"networking.k8s.io/v1alpha1/ipaddresses", "", `removed API "networking.k8s.io/v1alpha1/ipaddresses" cannot be served: its types are gone`},
		{"certificates.k8s.io/v1alpha1", "", `removed API "certificates.k8s.io/v1alpha1" cannot be served: it was an alpha version`},
	} {
		all, err := builtin.RemovedAPIs(strings.Split(c.names, ","))
		var got []string
		for _, r := range all {
			got = append(got, r.GVK.GroupVersion().String()+"/"+r.Resource.Resource)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %v, want %s", c.names, got, c.want)
		}
		if err == nil {
			err = errors.New("")
		}
		if !strings.HasPrefix(err.Error(), c.err) || (c.err == "") != (err.Error() == "") {
			t.Errorf("%q: error %v, want %s", c.names, err, c.err)
		}
	}
}
