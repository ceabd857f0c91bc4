package openapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/openapi"
)

func (d *definitions) serve() *httptest.Server {
	server := httptest.NewServer(openapi.New(d.kinds))
	server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d.t.Cleanup(server.Close)
	return server
}

// parsed are the parts of a document of either version that these tests read.
type parsed struct {
	Paths       map[string]map[string]any
	Definitions map[string]map[string]any
	Components  struct{ Schemas map[string]map[string]any }
}

func document(t testing.TB, server *httptest.Server, path string) parsed {
	t.Helper()
	resp, body := get(t, server, path)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, resp.StatusCode, body)
	}
	var doc parsed
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return doc
}

// at follows members of objects, "properties" left out: spec.color.
func at(schema map[string]any, field string) any {
	var v any = schema
	for _, name := range strings.Split(field, ".") {
		m, _ := v.(map[string]any)
		properties, _ := m["properties"].(map[string]any)
		v = properties[name]
	}
	return v
}

// TestPublishedSchemas compares schemas of fields with those that kube-apiserver publishes.
func TestPublishedSchemas(t *testing.T) {
	rows := []struct{ name, schema, v3, v2 string }{
		{"a description", `{"type":"string","description":"Its color."}`, `{"type":"string","description":"Its color."}`, `{"type":"string","description":"Its color."}`},
		{"a default stays", `{"type":"integer","format":"int32","minimum":0,"default":1}`, `{"type":"integer","format":"int32","minimum":0,"default":1}`, `{"type":"integer","format":"int32","minimum":0}`},
		{"an enumeration", `{"type":"string","enum":["a","b"]}`, `{"type":"string","enum":["a","b"]}`, `{"type":"string","enum":["a","b"]}`},
		{"int-or-string", `{"x-kubernetes-int-or-string":true}`, `{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{"x-kubernetes-int-or-string":true}`},
		{"nullable", `{"type":"string","nullable":true}`, `{"type":"string","nullable":true}`, `{}`},
		{"unknown fields", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"x-kubernetes-preserve-unknown-fields":true}`},
		{"a list that is a map", `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`,
			`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`,
			`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`},
		{"rules", `{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"}]}`, `{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"}]}`, `{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"}]}`},
		{"alternatives", `{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]}]}`, `{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]}]}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{"further properties", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`},
	}
	properties := map[string]json.RawMessage{"resource": json.RawMessage(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"a":{"type":"string"}}}`)}
	for i, row := range rows {
		properties[fmt.Sprintf("f%d", i)] = json.RawMessage(row.schema)
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}}})
	if err != nil {
		t.Fatal(err)
	}
	d := newDefinitions(t)
	d.put(toy("example.com", map[string]string{"v1": string(schema)}))
	server := d.serve()
	v3 := document(t, server, "/openapi/v3/apis/example.com/v1").Components.Schemas["com.example.v1.Toy"]
	v2 := document(t, server, "/openapi/v2").Definitions["com.example.v1.Toy"]
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			field := fmt.Sprintf("spec.f%d", i)
			same(t, "v3", row.v3, at(v3, field))
			same(t, "v2", row.v2, at(v2, field))
		})
	}
	for version, ref := range map[string]string{
		"v3": `{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],"description":"HELP"}`,
		"v2": `{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta","description":"HELP"}`,
	} {
		resource := at(map[string]map[string]any{"v3": v3, "v2": v2}[version], "spec.resource").(map[string]any)
		help := "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
		same(t, version, strings.ReplaceAll(ref, "HELP", help), at(resource, "metadata"))
		same(t, version, `["kind","apiVersion"]`, resource["required"])
	}
	for name, published := range map[string]map[string]any{"v3": v3, "v2": v2} {
		same(t, name, `[{"group":"example.com","version":"v1","kind":"Toy"}]`, published["x-kubernetes-group-version-kind"])
	}
}

func same(t *testing.T, what, want string, got any) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestPublishedDefinitions checks which paths and schemas are published.
func TestPublishedDefinitions(t *testing.T) {
	object := `{"type":"object","properties":{"spec":{"type":"object"}}}`
	preserving := `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	rows := []struct {
		name   string
		change func(crd *apiextensionsv1.CustomResourceDefinition)
		// below the group version
		paths, missing string
		check          func(t *testing.T, v3, v2 map[string]any)
	}{
		{name: "namespaced", paths: "/toys /namespaces/{namespace}/toys /namespaces/{namespace}/toys/{name}", missing: "/namespaces/{namespace}/toys/{name}/status /namespaces/{namespace}/toys/{name}/scale"},
		{name: "cluster scoped", change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped },
			paths: "/toys /toys/{name}", missing: "/namespaces/{namespace}/toys"},
		{name: "status and scale", change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a", StatusReplicasPath: ".status.a"}}
		}, paths: "/namespaces/{namespace}/toys/{name}/status /namespaces/{namespace}/toys/{name}/scale"},
		{name: "names that were granted", change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.Plural, crd.Spec.Names.Kind = "others", "Other"
		}, paths: "/toys", missing: "/others"},
		{name: "selectable fields", change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}}
		}, paths: "/toys", check: func(t *testing.T, v3, v2 map[string]any) {
			for version, schema := range map[string]map[string]any{"v3": v3, "v2": v2} {
				same(t, version, `[{"fieldPath":"spec.color"}]`, schema["x-kubernetes-selectable-fields"])
			}
		}},
		{name: "unknown fields at the top", change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema = toy("", map[string]string{"v1": preserving}).Spec.Versions[0].Schema.OpenAPIV3Schema
		}, paths: "/toys", check: func(t *testing.T, v3, v2 map[string]any) {
			if at(v3, "metadata") == nil || v2["properties"] != nil {
				t.Errorf("v3: %v\nv2: %v", v3, v2)
			}
		}},
	}
	d := newDefinitions(t)
	for i, row := range rows {
		crd := toy(fmt.Sprintf("g%d.example.com", i), map[string]string{"v1": object})
		if row.change != nil {
			row.change(crd)
		}
		d.put(crd)
	}
	server := d.serve()
	v2 := document(t, server, "/openapi/v2")
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			root := fmt.Sprintf("/apis/g%d.example.com/v1", i)
			v3 := document(t, server, "/openapi/v3"+root)
			for _, p := range strings.Fields(row.paths) {
				if v3.Paths[root+p] == nil || v2.Paths[root+p] == nil {
					t.Errorf("%s: v3 %t, v2 %t", p, v3.Paths[root+p] != nil, v2.Paths[root+p] != nil)
				}
			}
			for _, p := range strings.Fields(row.missing) {
				if v3.Paths[root+p] != nil || v2.Paths[root+p] != nil {
					t.Errorf("%s: v3 %t, v2 %t", p, v3.Paths[root+p] != nil, v2.Paths[root+p] != nil)
				}
			}
			if row.check != nil {
				name := fmt.Sprintf("com.example.g%d.v1.Toy", i)
				row.check(t, v3.Components.Schemas[name], v2.Definitions[name])
			}
		})
	}
}

// TestRegistryIsBehind makes a definition newer than the registry, which follows the log. A
// request then waits for the registry.
func TestRegistryIsBehind(t *testing.T) {
	const before, after = `{"type":"object","properties":{"before":{"type":"string"}}}`, `{"type":"object","properties":{"after":{"type":"string"}}}`
	for _, path := range []string{"/openapi/v3/apis/example.com/v1", "/openapi/v2"} {
		t.Run("changed "+path, func(t *testing.T) {
			d := newDefinitions(t)
			d.put(toy("example.com", map[string]string{"v1": before}))
			server := d.serve()
			newer := toy("example.com", map[string]string{"v1": after})
			newer.Generation = 2
			d.store(newer)
			answered := make(chan string)
			go func() {
				code, body := tell(t, server, path)
				answered <- fmt.Sprint(code, " ", strings.Contains(body, `"before"`), strings.Contains(body, `"after"`))
			}()
			d.waits("toys.example.com")
			d.put(newer)
			if got, want := <-answered, "200 false true"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
		t.Run("deleted "+path, func(t *testing.T) {
			d := newDefinitions(t)
			d.put(toy("example.com", map[string]string{"v1": before}))
			server := d.serve()
			gone := d.now["toys.example.com"]
			settle := d.remove("toys.example.com")
			answered := make(chan string)
			go func() {
				code, body := tell(t, server, path)
				answered <- fmt.Sprint(code, " ", strings.Contains(body, "com.example.v1.Toy"))
			}()
			d.now["toys.example.com"] = gone
			d.waits("toys.example.com")
			settle()
			want := "404 false"
			if path == "/openapi/v2" {
				want = "200 false"
			}
			if got := <-answered; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// tell does what get does, for goroutines other than the test's.
func tell(t *testing.T, server *httptest.Server, path string) (int, string) {
	resp, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(body)
}

// waits returns when a request has read the definition.
func (d *definitions) waits(name string) {
	for begun := time.Now(); d.now[name].reads.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			d.t.Fatalf("nobody reads %s", name)
		}
	}
}

// TestDefinitionsBesideBuiltinKinds has a definition in the group version of a built-in kind, and
// one whose group gives its type the name of a built-in type.
func TestDefinitionsBesideBuiltinKinds(t *testing.T) {
	d := newDefinitions(t)
	d.put(toy("apps", map[string]string{"v1": `{"type":"object"}`}))
	crd := toy("apps.api.k8s.io", map[string]string{"v1": `{"type":"object"}`})
	crd.Status.AcceptedNames.Kind, crd.Status.AcceptedNames.ListKind = "Deployment", "DeploymentList"
	d.put(crd)
	server := d.serve()
	v2, v3 := document(t, server, "/openapi/v2"), document(t, server, "/openapi/v3/apis/apps/v1")
	for _, path := range []string{"/apis/apps/v1/toys", "/apis/apps/v1/deployments"} {
		if v2.Paths[path] == nil || v3.Paths[path] == nil {
			t.Errorf("%s: v2 %t, v3 %t", path, v2.Paths[path] != nil, v3.Paths[path] != nil)
		}
	}
	if at(v2.Definitions["io.k8s.api.apps.v1.Deployment"], "spec") == nil {
		t.Error("the built-in type has lost its definition")
	}
	_, text := get(t, server, "/openapi/v2")
	checkDuplicates(t, text)
}

// definitions are CustomResourceDefinitions with a registry that serves them.
type definitions struct {
	t     testing.TB
	kinds *kind.Registry
	now   map[string]*defined
}

// defined is one definition: the JSON that is read, and the Kinds in the registry.
type defined struct {
	json  atomic.Pointer[[]byte]
	reads atomic.Int64
	kinds []*kind.Kind
}

func newDefinitions(t testing.TB) *definitions {
	d := &definitions{t: t, kinds: kind.NewRegistry(builtin.Priorities()), now: map[string]*defined{}}
	d.kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	return d
}

// toy is a definition of kind Toy as the server stores it. schemas are by version.
func toy(group string, schemas map[string]string) *apiextensionsv1.CustomResourceDefinition {
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "toys", Singular: "toy", Kind: "Toy", ListKind: "ToyList"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "toys." + group, UID: types.UID("uid of " + group), Generation: 1},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: names},
	}
	for _, version := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[version]
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := json.Unmarshal([]byte(schema), props); err != nil {
			panic(err)
		}
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: len(crd.Spec.Versions) == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
		})
	}
	return crd
}

// store makes crd the definition that is read, without changing the registry.
func (d *definitions) store(crd *apiextensionsv1.CustomResourceDefinition) *defined {
	d.t.Helper()
	text, err := json.Marshal(crd)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.now[crd.Name] == nil {
		d.now[crd.Name] = &defined{}
	}
	d.now[crd.Name].json.Store(&text)
	return d.now[crd.Name]
}

// put makes crd the definition that is read and served.
func (d *definitions) put(crd *apiextensionsv1.CustomResourceDefinition) {
	d.t.Helper()
	now := d.store(crd)
	definition, err := custom.Decode(*now.json.Load())
	if err != nil {
		d.t.Fatal(err)
	}
	converters, err := custom.NewConverters(nil, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(converters.Close)
	read := func() ([]byte, error) {
		now.reads.Add(1)
		if text := now.json.Load(); text != nil {
			return *text, nil
		}
		return nil, fmt.Errorf("it is gone: %w", kind.ErrReplaced)
	}
	kinds, _, err := custom.Kinds(definition, read, converters, make(chan struct{}))
	if err != nil {
		d.t.Fatal(err)
	}
	d.kinds.Replace(now.kinds, kinds)
	now.kinds = kinds
}

// remove removes the definition. The registry serves it until the returned function is called.
func (d *definitions) remove(name string) (settle func()) {
	now := d.now[name]
	delete(d.now, name)
	now.json.Store(nil)
	return func() { d.kinds.Replace(now.kinds, nil) }
}

// suite makes n definitions, as a cluster with many operators has: each in a group of its own,
// with fifty described fields, status and scale.
func suite(t testing.TB, n int) (*definitions, []*apiextensionsv1.CustomResourceDefinition) {
	d := newDefinitions(t)
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for i := range 50 {
		fields[fmt.Sprintf("field%d", i)] = apiextensionsv1.JSONSchemaProps{Type: "string",
			Description: fmt.Sprintf("Field %d says what is to become of the part of that number, which the operator looks after.", i)}
	}
	schema, err := json.Marshal(apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: fields}, "status": {Type: "object", Properties: fields},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for i := range n {
		crd := toy(fmt.Sprintf("group%03d.example.com", i), map[string]string{"v1": string(schema)})
		crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.field0", StatusReplicasPath: ".status.field0"},
		}
		crds = append(crds, crd)
	}
	return d, crds
}
