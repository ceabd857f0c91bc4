package definitions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// damaged gives a definition a second version, and a conversion webhook whose bundle of authorities
// cannot be parsed.
func damaged(crd *apiextensionsv1.CustomResourceDefinition) {
	url := "https://localhost:1/"
	crd.Spec.Versions = append(crd.Spec.Versions, version("v2", false))
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("\n")},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// A definition whose bundle cannot be parsed is not established: it is nowhere to be seen, and each
// request is an error of the server, as in kube-apiserver.
func TestServedBroken(t *testing.T) {
	f := openFixture(t)
	f.define(definition("foos", "Foo", damaged))
	list := func() error {
		return f.rest.Get().AbsPath("/apis/" + group + "/v1/foos").Do(t.Context()).Error()
	}
	const refused = "Internal error occurred: error resolving resource"
	if err := list(); !apierrors.IsInternalError(err) || err.Error() != refused {
		t.Errorf("list: %v", err)
	}
	if err := f.add("foos", "Foo", "a"); !apierrors.IsInternalError(err) || err.Error() != refused {
		t.Errorf("create: %v", err)
	}
	if got := f.conditions("foos." + group)["Established"]; got != "False InvalidCABundle" {
		t.Errorf("Established is %s", got)
	}
	if f.served() != nil {
		t.Errorf("shown to others: %v", f.served())
	}
	f.patch("foos."+group, `[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]`)
	f.catchUp()
	if err := list(); err != nil {
		t.Errorf("mended: list: %v", err)
	}
	if diff := cmp.Diff([]string{"v1 foos Foo", "v2 foos Foo"}, f.served()); diff != "" {
		t.Errorf("mended: served (-want +got):\n%s", diff)
	}
	f.define(definition("bars", "Bar", damaged))
	f.delete("bars." + group)
	f.catchUp()
	if f.terminate(); f.get("bars."+group) != nil {
		t.Errorf("it cannot be deleted: %v", f.conditions("bars."+group))
	}
	if err := f.rest.Get().AbsPath("/apis/" + group + "/v1/bars").Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("deleted: list: %v", err)
	}
}

// A definition in the group of built-in resources gets its names, and nothing of it is served: all
// paths below such a group lead to the built-in resources.
func TestBuiltinGroup(t *testing.T) {
	f := openFixture(t)
	crd := definition("foos", "Foo")
	crd.Name, crd.Spec.Group = "foos.networking.k8s.io", "networking.k8s.io"
	crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, a test"}
	crd.Spec.Versions = append(crd.Spec.Versions, version("v7", false))
	f.define(crd)
	if got := f.conditions("foos.networking.k8s.io")["Established"]; got != "True InitialNamesAccepted" {
		t.Errorf("Established is %s", got)
	}
	for _, version := range []string{"v1", "v7"} {
		err := f.rest.Get().AbsPath("/apis/networking.k8s.io/" + version + "/foos").Do(t.Context()).Error()
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", version, err)
		}
	}
	// Objects from before, when such resources were served.
	f.commit("/registry/networking.k8s.io/foos/old", []byte(`{"kind":"Foo","apiVersion":"networking.k8s.io/v1","metadata":{"name":"old","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"}}`))
	f.delete("foos.networking.k8s.io")
	f.catchUp()
	if f.terminate(); f.get("foos.networking.k8s.io") != nil || f.api.Store.Get("/registry/networking.k8s.io/foos/old") != nil {
		t.Errorf("left: %v", f.conditions("foos.networking.k8s.io"))
	}
}
