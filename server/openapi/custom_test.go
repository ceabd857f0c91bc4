package openapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plinth-io/plinth/server/openapi"
)

func (d *definitions) serve() *httptest.Server {
	server := httptest.NewServer(openapi.New(d.kinds))
	server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d.t.Cleanup(server.Close)
	return server
}

// parsed is a document of either version, as far as these tests look.
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

// TestPublishedSchemas compares with what kube-apiserver 1.33 publishes of a field.
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

// TestPublishedDefinitions looks at which paths and schemas there are.
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

// Everything that a reference names is there, once, and what definitions have in common
// with built-in kinds is the latter's.
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

// The protobuf says what the JSON says.
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

// Two servers with the same definitions answer with the same bytes and hashes, whatever
// came first; what documents depend on changes the hash.
func TestHashes(t *testing.T) {
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

// However many clients ask after a change, each definition is read once for v2, and only
// the one that has changed is read again.
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

// A definition may be newer than the registry, which follows the log. A request then waits
// for the registry.
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

// tell is get for goroutines that are not the test's own.
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
		if time.Since(begun) > time.Minute {
			d.t.Fatalf("nobody reads %s", name)
		}
	}
}

// Definitions that come too near to built-in kinds: one in the same group version, and one
// whose group is spelled so that its type gets the name of a built-in one.
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

func TestIfNoneMatch(t *testing.T) {
	d := newDefinitions(t)
	d.put(toy("example.com", map[string]string{"v1": `{"type":"object"}`}))
	server := d.serve()
	for _, path := range []string{"/openapi/v3/apis/example.com/v1", "/openapi/v2"} {
		resp, _ := get(t, server, path)
		tag := resp.Header.Get("ETag")
		for header, code := range map[string]int{tag: 304, "W/" + tag: 304, `"a", ` + tag: 304, "*": 304, `"a"`: 200, "": 200, strings.Trim(tag, `"`): 200} {
			resp, body := get(t, server, path, "If-None-Match", header)
			if resp.StatusCode != code || resp.Header.Get("ETag") != tag || (code == 304) != (len(body) == 0) || resp.Header.Values("Vary")[0] != "Accept" {
				t.Errorf("%s with %s: %d, want %d; %v", path, header, resp.StatusCode, code, resp.Header)
			}
		}
	}
}
