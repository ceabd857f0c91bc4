package builtin_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

func TestKindsAreComplete(t *testing.T) {
	prefixes := map[string]*kind.Kind{}
	for _, k := range builtin.Kinds(builtin.Options{}) {
		t.Run(k.Group+"/"+k.Resource, func(t *testing.T) {
			if k.Singular == "" || k.ListKind != k.Kind+"List" || len(k.Versions) == 0 || !slices.IsSorted(k.Verbs) {
				t.Errorf("%+v", k)
			}
			if k.Codec == nil || k.Codec.New() == nil || k.FieldLabel == nil || k.Attrs == nil {
				t.Error("codec, field labels or attributes are missing")
			}
			if _, ok := k.Codec.New().(runtime.NestedObjectDecoder); ok {
				t.Error("the codec's short way does not decode nested objects")
			}
			if k.Virtual == nil && k.Observed == nil {
				checkRules(t, k)
			}
		})
		if other := prefixes[k.Prefix()]; other != nil && k.Group != "events.k8s.io" && other.Group != "events.k8s.io" {
			t.Errorf("%s and %s share keys", other.GroupResource(), k.GroupResource())
		}
		prefixes[k.Prefix()] = k
	}
}

func checkRules(t *testing.T, k *kind.Kind) {
	t.Helper()
	if k.Create == nil || k.Update == nil || k.Delete == nil || k.Table == nil {
		t.Fatal("strategies or columns are missing")
	}
	if k.Create.NamespaceScoped() != k.Namespaced || k.Update.NamespaceScoped() != k.Namespaced {
		t.Errorf("namespaced %v, but not for the strategies", k.Namespaced)
	}
	if _, ok := k.Delete.(apirest.RESTGracefulDeleteStrategy); ok != (k.Resource == "pods") {
		t.Error("only pods are deleted gracefully")
	}
	for name, s := range k.Subresources {
		if s.Name != name || s.Update == nil || len(s.Verbs) == 0 {
			t.Errorf("subresource %s: %+v", name, s)
		}
		if (s.View == nil) != (s.GVK.Kind == "") || (s.View == nil) != (s.Codec == nil) {
			t.Errorf("subresource %s has only some of body, view and codec", name)
		}
	}
}

// TestFields checks that Attrs returns every field that a selector can name.
func TestFields(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if k.Virtual != nil || k.Observed != nil {
			continue
		}
		_, fields, err := k.Attrs(randomObject(t, k, 1))
		if err != nil {
			t.Errorf("%s: %v", k.Resource, err)
		}
		for _, v := range k.Versions {
			labels := []string{"metadata.name"}
			if k.Namespaced && k.Resource != "podcertificaterequests" { // as upstream
				labels = append(labels, "metadata.namespace")
			}
			for _, label := range labels {
				field, value, err := k.FieldLabel(v.Name, label, "x")
				if err != nil || value != "x" || !fields.Has(field) {
					t.Errorf("%s %s: %q %q %v, fields %v", k.Resource, label, field, value, err, fields)
				}
			}
			if _, _, err := k.FieldLabel(v.Name, "spec.nonsense", "x"); err == nil {
				t.Errorf("%s: spec.nonsense was accepted", k.Resource)
			}
		}
	}
}

func TestFieldLabels(t *testing.T) {
	for _, c := range []struct{ group, resource, label, field, err string }{
		{"", "pods", "spec.nodeName", "spec.nodeName", ""},
		{"", "pods", "spec.host", "spec.nodeName", ""},
		{"", "pods", "spec.x", "", "field label not supported: spec.x"},
		{"", "configmaps", "data", "", `"data" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"", "secrets", "type", "type", ""},
		{"", "events", "involvedObject.name", "involvedObject.name", ""},
		{"events.k8s.io", "events", "regarding.name", "involvedObject.name", ""},
		{"batch", "jobs", "status.successful", "status.successful", ""},
		{"certificates.k8s.io", "certificatesigningrequests", "spec.signerName", "spec.signerName", ""},
	} {
		k := find(t, c.group, c.resource)
		field, _, err := k.FieldLabel("v1", c.label, "x")
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s %s: error %v, want %s", c.resource, c.label, err, c.err)
			}
			continue
		}
		if err != nil || field != c.field {
			t.Errorf("%s %s: %q %v, want %q", c.resource, c.label, field, err, c.field)
		}
		if _, fields, _ := k.Attrs(randomObject(t, k, 1)); !fields.Has(c.field) {
			t.Errorf("%s: %s is not in %v", c.resource, c.field, fields)
		}
	}
}
