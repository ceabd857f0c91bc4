package openapi_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestRemovedKindsValidate is TestEveryKindValidates for versions that are served on request.
func TestRemovedKindsValidate(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"extensions/v1beta1", "apps/v1beta1", "apiextensions.k8s.io/v1beta1", "authorization.k8s.io/v1beta1", "storage.k8s.io/v1alpha1"})
	if err != nil {
		t.Fatal(err)
	}
	server, kinds := serve(t)
	kinds.Replace(kinds.Set().Kinds, builtin.Kinds(builtin.Options{Removed: all}))
	client := openapi3.NewRoot(clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL}).OpenAPIV3())
	docs := map[schema.GroupVersion]*spec3.OpenAPI{}
	for _, r := range all {
		gv := r.GVK.GroupVersion()
		if docs[gv] == nil {
			if docs[gv], err = client.GVSpec(gv); err != nil {
				t.Fatalf("%s: %v", gv, err)
			}
		}
		checkKind(t, docs[gv], kinds.Lookup(gv.Group, gv.Version, r.Resource.Resource), gv.Version)
	}
	resp, body := get(t, server, "/openapi/v2")
	if resp.StatusCode != 200 || len(body) == 0 {
		t.Errorf("v2: %s", resp.Status)
	}
}
