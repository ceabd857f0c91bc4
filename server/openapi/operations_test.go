package openapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/openapi"
)

// TestEveryKindValidates checks in every document what kubectl looks for: a PATCH of each kind
// with the parameters fieldValidation and dryRun, and a schema that names the kind.
func TestEveryKindValidates(t *testing.T) {
	server, kinds := serve(t)
	client := openapi3.NewRoot(clientdiscovery.NewDiscoveryClientForConfigOrDie(&clientrest.Config{Host: server.URL}).OpenAPIV3())
	docs := map[schema.GroupVersion]*spec3.OpenAPI{}
	for _, k := range kinds.Set().Kinds {
		for _, v := range k.Versions {
			gv := k.GVK(v.Name).GroupVersion()
			if docs[gv] == nil {
				doc, err := client.GVSpec(gv)
				if err != nil {
					t.Fatalf("%s: %v", gv, err)
				}
				docs[gv] = doc
			}
			checkKind(t, docs[gv], k, v.Name)
		}
	}
	gvs, err := client.GroupVersions()
	if err != nil || len(gvs) != len(docs) {
		t.Errorf("index has %d group versions, want %d; %v", len(gvs), len(docs), err)
	}
}

func checkKind(t *testing.T, doc *spec3.OpenAPI, k *kind.Kind, version string) {
	t.Helper()
	gvk := k.GVK(version)
	verb := "patch"
	if k.Observed != nil {
		return // nothing is written
	}
	if k.Virtual != nil {
		verb = "post"
	}
	if parameters, ok := parametersOf(doc, verb, gvk); !ok {
		t.Errorf("%s: no %s", gvk, verb)
	} else {
		for _, want := range []string{"fieldValidation", "dryRun", "fieldManager"} {
			if !parameters[want] {
				t.Errorf("%s: %s has no parameter %s", gvk, verb, want)
			}
		}
	}
	for _, s := range doc.Components.Schemas {
		if namesKind(s.Extensions, gvk) {
			if metadata := s.Properties["metadata"]; metadata.AllOf == nil && metadata.Ref.String() == "" {
				t.Errorf("%s: schema has no metadata", gvk)
			}
			return
		}
	}
	t.Errorf("%s: no schema", gvk)
}

// parametersOf are the query parameters of an operation and of its path.
func parametersOf(doc *spec3.OpenAPI, action string, gvk schema.GroupVersionKind) (map[string]bool, bool) {
	for _, path := range doc.Paths.Paths {
		for _, op := range []*spec3.Operation{path.Patch, path.Post} {
			if op == nil || op.Extensions["x-kubernetes-action"] != action || !namesKind(op.Extensions, gvk) {
				continue
			}
			names := map[string]bool{}
			for _, p := range append(path.Parameters, op.Parameters...) {
				names[p.Name] = p.In == "query"
			}
			return names, true
		}
	}
	return nil, false
}

// namesKind reads the extension that names one kind in operations and several in schemas.
func namesKind(e spec.Extensions, gvk schema.GroupVersionKind) bool {
	value := e["x-kubernetes-group-version-kind"]
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind {
			return true
		}
	}
	return false
}

// TestDescriptionsOfLists: who reads the document is not told to watch what cannot be watched.
func TestDescriptionsOfLists(t *testing.T) {
	server, _ := serve(t)
	_, body := get(t, server, "/openapi/v3/api/v1")
	var doc struct {
		Paths map[string]struct{ Get struct{ Description string } }
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/api/v1/componentstatuses": "list objects of kind ComponentStatus", "/api/v1/pods": "list or watch objects of kind Pod",
	} {
		if got := doc.Paths[path].Get.Description; got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestPathsAndOperations(t *testing.T) {
	server, _ := serve(t)
	_, body := get(t, server, "/openapi/v3/apis/apps/v1")
	var doc spec3.OpenAPI
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	for path, ids := range map[string][]string{
		"/apis/apps/v1/deployments":                                      {"listAppsV1DeploymentForAllNamespaces"},
		"/apis/apps/v1/namespaces/{namespace}/deployments":               {"listAppsV1NamespacedDeployment", "createAppsV1NamespacedDeployment", "deleteAppsV1CollectionNamespacedDeployment"},
		"/apis/apps/v1/namespaces/{namespace}/deployments/{name}":        {"readAppsV1NamespacedDeployment", "replaceAppsV1NamespacedDeployment", "patchAppsV1NamespacedDeployment", "deleteAppsV1NamespacedDeployment"},
		"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale":  {"readAppsV1NamespacedDeploymentScale", "replaceAppsV1NamespacedDeploymentScale", "patchAppsV1NamespacedDeploymentScale"},
		"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status": {"readAppsV1NamespacedDeploymentStatus"},
	} {
		p := doc.Paths.Paths[path]
		if p == nil {
			t.Errorf("no path %s", path)
			continue
		}
		got := map[string]bool{}
		for _, op := range []*spec3.Operation{p.Get, p.Post, p.Put, p.Patch, p.Delete} {
			if op != nil {
				got[op.OperationId] = true
			}
		}
		for _, id := range ids {
			if !got[id] {
				t.Errorf("%s: no operation %s in %v", path, id, got)
			}
		}
	}
	for _, name := range []string{"WatchEvent", "DeleteOptions"} { // which all groups have
		kinds := doc.Components.Schemas["io.k8s.apimachinery.pkg.apis.meta.v1."+name].Extensions["x-kubernetes-group-version-kind"]
		want := []any{
			map[string]any{"group": "", "version": "v1", "kind": name}, map[string]any{"group": "apps", "version": "v1", "kind": name},
		}
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Errorf("the kinds of %s (-want +got):\n%s", name, diff)
		}
	}
	scale := doc.Components.Schemas["io.k8s.api.autoscaling.v1.Scale"]
	if scale == nil {
		t.Error("no schema of Scale")
	}
	replicas := doc.Components.Schemas["io.k8s.api.apps.v1.DeploymentSpec"].Properties["replicas"]
	if !strings.HasPrefix(replicas.Description, "Number of desired pods.") {
		t.Errorf("replicas are described as %q", replicas.Description)
	}
}

// TestMediaTypes has the media types of operations, without upstream's feature gate
// CBORServingAndStorage and with it.
func TestMediaTypes(t *testing.T) {
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	const all, streams = "json yaml vnd.kubernetes.protobuf", "json;stream=watch vnd.kubernetes.protobuf;stream=watch"
	const patches = "json-patch+json merge-patch+json strategic-merge-patch+json apply-patch+yaml"
	want := map[bool]map[string]string{
		false: {"get": all, "list": all + " " + streams, "patch": patches, "discovery": all, "group": all, "core": all, "groups": all},
		true:  {"get": all + " cbor", "list": all + " cbor " + streams + " cbor-seq", "patch": patches + " apply-patch+cbor", "discovery": all + " cbor", "group": all, "core": all + " cbor", "groups": all + " cbor"},
	}
	hashes := map[string]bool{}
	for on, want := range want {
		o := openapi.New(kinds)
		o.CBOR = on
		server := httptest.NewServer(o)
		defer server.Close()
		resp, body := get(t, server, "/openapi/v2", "Accept", "application/json")
		hashes[resp.Header.Get("ETag")] = true
		var doc spec.Swagger
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatal(err)
		}
		paths := doc.Paths.Paths
		object := paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
		for name, types := range map[string][]string{
			"get": object.Get.Produces, "patch": object.Patch.Consumes, "list": paths["/apis/apps/v1/deployments"].Get.Produces,
			"discovery": paths["/apis/apps/v1/"].Get.Produces, "group": paths["/apis/apps/"].Get.Produces,
			"core": paths["/api/"].Get.Produces, "groups": paths["/apis/"].Get.Produces,
		} {
			if got := strings.ReplaceAll(strings.Join(types, " "), "application/", ""); got != want[name] {
				t.Errorf("CBOR %t, %s: %s, want %s", on, name, got, want[name])
			}
		}
	}
	if len(hashes) != 2 {
		t.Error("CBOR does not change the hash")
	}
}

// TestRemovedKindsValidate checks the same for removed versions that are served on request.
func TestRemovedKindsValidate(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"extensions/v1beta1", "apps/v1beta1", "apiextensions.k8s.io/v1beta1", "authorization.k8s.io/v1beta1", "storage.k8s.io/v1alpha1"})
	if err != nil {
		t.Fatal(err)
	}
	server, kinds := serve(t)
	kinds.Replace(kinds.Set().Kinds, builtin.Kinds(builtin.Options{Removed: all}))
	client := openapi3.NewRoot(clientdiscovery.NewDiscoveryClientForConfigOrDie(&clientrest.Config{Host: server.URL}).OpenAPIV3())
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
