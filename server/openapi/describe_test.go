package openapi_test

import (
	"net/http/httptest"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestHashesOfDocuments: servers with the same definitions answer with the same bytes and hashes, in
// whatever order the definitions were added. A change of a document's input changes its hash.
func TestHashesOfDocuments(t *testing.T) {
	const object = `{"type":"object"}`
	serve := func(crds ...*apiextensionsv1.CustomResourceDefinition) *httptest.Server {
		d := newDefinitions(t)
		for _, crd := range crds {
			d.put(crd)
		}
		return d.serve()
	}
	// A client that has any version of the document gets the hash, and nothing is built.
	answers := func(crds ...*apiextensionsv1.CustomResourceDefinition) string {
		server := serve(crds...)
		v3, _ := get(t, server, urlOf(t, server, "apis/one.example.com/v1"), "If-None-Match", "*")
		v2, _ := get(t, server, "/openapi/v2", "If-None-Match", "*")
		return v3.Header.Get("ETag") + v2.Header.Get("ETag")
	}
	one, two := toy("one.example.com", map[string]string{"v1": object}), toy("two.example.com", map[string]string{"v1": object})
	first := answers(one, two)
	if second := answers(two, one); first != second || len(first) < 100 {
		t.Errorf("hashes of two servers:\n%s\n%s", first, second)
	}
	for _, path := range []string{"/openapi/v3/apis/one.example.com/v1", "/openapi/v2"} {
		_, a := get(t, serve(one, two), path)
		_, b := get(t, serve(two, one), path)
		if string(a) != string(b) {
			t.Errorf("%s is not the same on two servers", path)
		}
	}
	for name, change := range map[string]func(crd *apiextensionsv1.CustomResourceDefinition){
		"uid":        func(crd *apiextensionsv1.CustomResourceDefinition) { crd.UID = "another" },
		"generation": func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Generation++ },
		"list kind":  func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.AcceptedNames.ListKind = "Toys" },
		"singular":   func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.AcceptedNames.Singular = "thing" },
	} {
		changed := one.DeepCopy()
		change(changed)
		if got := answers(changed, two); got == first {
			t.Errorf("the hashes do not depend on the %s", name)
		}
	}
	status := one.DeepCopy()
	status.ResourceVersion, status.Status.StoredVersions = "17", []string{"v1"}
	if got := answers(status, two); got != first {
		t.Error("the hashes depend on what no document shows")
	}
}
