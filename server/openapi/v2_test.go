package openapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestV2(t *testing.T) {
	server, _ := serve(t)
	_, body := get(t, server, "/openapi/v2")
	var doc spec.Swagger
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Paths.Paths["/api/v1/namespaces/{namespace}/configmaps/{name}"].Patch == nil {
		t.Error("no PATCH of configmaps")
	}
	if _, ok := doc.Definitions["io.k8s.api.core.v1.ConfigMap"]; !ok {
		t.Error("no definition of ConfigMap")
	}
}

// TestV2IsWhole: every reference has exactly one target. Types that definitions share with
// built-in kinds are those of the built-in kinds.
func TestV2IsWhole(t *testing.T) {
	d, crds := suite(t, 3)
	crds[2].Spec.Group, crds[2].Name = crds[1].Spec.Group, "others."+crds[1].Spec.Group
	crds[2].Status.AcceptedNames = apiextensionsv1.CustomResourceDefinitionNames{Plural: "others", Singular: "other", Kind: "Other", ListKind: "OtherList"}
	for _, crd := range crds {
		d.put(crd)
	}
	server := d.serve()
	_, text := get(t, server, "/openapi/v2")
	checkDuplicates(t, text)
	doc := document(t, server, "/openapi/v2")
	for _, name := range []string{"com.example.group000.v1.Toy", "com.example.group001.v1.ToyList", "com.example.group001.v1.Other", "io.k8s.api.apps.v1.Deployment"} {
		if doc.Definitions[name] == nil {
			t.Errorf("no definition %s", name)
		}
	}
	var shared struct{ Parameters map[string]any }
	if err := json.Unmarshal(text, &shared); err != nil {
		t.Fatal(err)
	}
	for ref := range references(text) {
		name, isDefinition := strings.CutPrefix(ref, "#/definitions/")
		parameter, _ := strings.CutPrefix(ref, "#/parameters/")
		if isDefinition && doc.Definitions[name] == nil || !isDefinition && shared.Parameters[parameter] == nil {
			t.Errorf("%s is not there", ref)
		}
	}
	for name := range doc.Definitions {
		if strings.Contains(name, "_v2") {
			t.Errorf("definition %s", name)
		}
	}
	v3 := document(t, server, "/openapi/v3/apis/"+crds[1].Spec.Group+"/v1")
	if v3.Components.Schemas["com.example.group001.v1.Toy"] == nil || v3.Components.Schemas["com.example.group001.v1.Other"] == nil {
		t.Error("two definitions of a group version are not both in its document")
	}
}

func references(text []byte) map[string]bool {
	found := map[string]bool{}
	for _, rest := range strings.Split(string(text), `"$ref":"`)[1:] {
		ref, _, _ := strings.Cut(rest, `"`)
		found[ref] = true
	}
	return found
}

// checkDuplicates fails the test for members of an object with the same name.
func checkDuplicates(t *testing.T, text []byte) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	var walk func(path string)
	walk = func(path string) {
		token, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		open, _ := token.(json.Delim)
		seen := map[string]bool{}
		for open != 0 && decoder.More() {
			child := path
			if open == '{' {
				name, err := decoder.Token()
				if err != nil {
					t.Fatal(err)
				}
				if child += "/" + name.(string); seen[child] {
					t.Errorf("%s is there twice", child)
				}
				seen[child] = true
			}
			walk(child)
		}
		if open != 0 {
			if _, err := decoder.Token(); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk("")
}

// TestV2Protobuf: the protobuf has the same content as the JSON.
func TestV2Protobuf(t *testing.T) {
	d, crds := suite(t, 3)
	for _, crd := range crds {
		d.put(crd)
	}
	server := d.serve()
	_, binary := get(t, server, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	var got openapi_v2.Document
	if err := proto.Unmarshal(binary, &got); err != nil {
		t.Fatal(err)
	}
	_, text := get(t, server, "/openapi/v2")
	want, err := openapi_v2.ParseDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.Swagger != want.Swagger || !proto.Equal(got.Info, want.Info) || len(got.Security) != len(want.Security) {
		t.Errorf("%v %v %v", got.Swagger, got.Info, got.Security)
	}
	if len(got.Paths.Path) != len(want.Paths.Path) || len(got.Parameters.AdditionalProperties) != len(want.Parameters.AdditionalProperties) {
		t.Errorf("%d paths and %d parameters, want %d and %d", len(got.Paths.Path), len(got.Parameters.AdditionalProperties), len(want.Paths.Path), len(want.Parameters.AdditionalProperties))
	}
	schemas := map[string]*openapi_v2.Schema{}
	for _, s := range got.Definitions.AdditionalProperties {
		schemas[s.Name] = s.Value
	}
	if len(schemas) != len(want.Definitions.AdditionalProperties) {
		t.Errorf("%d definitions, want %d", len(schemas), len(want.Definitions.AdditionalProperties))
	}
	for _, s := range want.Definitions.AdditionalProperties {
		if !proto.Equal(schemas[s.Name], s.Value) {
			t.Errorf("definition %s differs", s.Name)
		}
	}
}

// TestV2IsBuiltOnce: however many clients request v2, each definition is read once, and after a
// change only the changed one is read again.
func TestV2IsBuiltOnce(t *testing.T) {
	d, crds := suite(t, 5)
	for _, crd := range crds {
		d.put(crd)
	}
	server := d.serve()
	ask := func() {
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				if code, _ := tell(t, server, "/openapi/v2"); code != http.StatusOK {
					t.Errorf("status %d", code)
				}
			})
		}
		clients.Wait()
	}
	ask()
	crds[3].Generation++
	d.put(crds[3])
	ask()
	for i, crd := range crds {
		want := int64(1)
		if i == 3 {
			want = 2
		}
		if got := d.now[crd.Name].reads.Load(); got != want {
			t.Errorf("%s was read %d times, want %d", crd.Name, got, want)
		}
	}
}
