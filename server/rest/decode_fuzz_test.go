package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// FuzzDefinition sends random definitions. A definition that is accepted can be read, and requests
// for its resource do not fail with an error of the server.
func FuzzDefinition(f *testing.F) {
	f.Add(definitionOf(`{"type":"object","properties":{"a":{"type":"string","default":"b","pattern":"^b"}}}`))
	f.Add(definitionOf(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`))
	f.Add(definitionOf(`{"x-kubernetes-int-or-string":true,"x-kubernetes-validations":[{"rule":"self == oldSelf","message":"m"}]}`))
	f.Add(definitionOf(`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"nullable":true}`))
	f.Add(definitionOf(`{"type":"string","oneOf":[{"minLength":1},{"not":{"enum":["x"]}}],"format":"date-time"}`))
	h := newHarness(f, rest.Options{})
	h.serveDefinitions()
	f.Fuzz(func(t *testing.T, body string) {
		h := *h
		h.t = t
		before := h.store.Revision()
		a := h.do("POST", definitionsPath+"?dryRun=All", body)
		checkRefusal(t, &h, a, before)
		if a.code != 201 || a.get("metadata", "name") != "bads.bad.example.com" || a.get("spec", "scope") != "Cluster" {
			return
		}
		h.do("POST", definitionsPath, body).want(201)
		h.until("its names are decided", func() bool { return h.condition("bads.bad.example.com", "NamesAccepted") != "" })
		path := "/apis/bad.example.com/" + a.get("spec", "versions", "0", "name") + "/" + a.get("spec", "names", "plural")
		if k := a.get("spec", "names", "kind"); h.condition("bads.bad.example.com", "NamesAccepted") == "True" {
			h.until("it is established", func() bool { return h.condition("bads.bad.example.com", "Established") == "True" })
			object := `{"apiVersion":"bad.example.com/` + a.get("spec", "versions", "0", "name") + `","kind":"` + k + `","metadata":{"name":"a"},"spec":{"a":"b"}}`
			before := h.store.Revision()
			checkRefusal(t, &h, h.do("POST", path+"?dryRun=All", object), before)
		}
		h.do("DELETE", definitionsPath+"/bads.bad.example.com", "").want(200)
		h.until("it is gone", func() bool { return h.do("GET", definitionsPath+"/bads.bad.example.com", "").code == 404 })
	})
}

// FuzzCustomObject sends random objects of the definition in testdata/widgets.json. An object that
// is accepted is stored as it was answered, and sending the answer again changes nothing.
func FuzzCustomObject(f *testing.F) {
	for _, spec := range []string{
		`{"color":"red","min":1}`, `{"color":"blue","set":["a","b"],"map":[{"name":"x"}],"port":"http","note":null}`,
		`{"color":"red","free":{"a":[1,2.5,{"b":null}]},"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}}}}`,
		`{"color":"red","dict":{"k":1},"num":1e3,"frozen":"x","text":"abc","replicas":3}`, `[]`, `null`, `{"color":{}}`,
	} {
		f.Add(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":` + spec + `}`)
	}
	h := newHarness(f, rest.Options{}, nothingStays)
	h.serveDefinitions()
	h.define(widgets(f, "example.com"))
	const path = "/apis/example.com/v1/namespaces/default/widgets"
	f.Fuzz(func(t *testing.T, body string) {
		h := *h
		h.t = t
		before := h.store.Revision()
		a := h.do("POST", path, body)
		checkRefusal(t, &h, a, before)
		if a.code != 201 {
			return
		}
		name := path + "/" + a.get("metadata", "name")
		got := h.do("GET", name, "").want(200)
		if got.body != a.body {
			t.Errorf("answered %s\nread %s", a.body, got.body)
		}
		again := h.do("PUT", name, a.body).want(200)
		if again.get("metadata", "resourceVersion") != a.get("metadata", "resourceVersion") {
			t.Errorf("answered %s\nsent again it became %s", a.body, again.body)
		}
		var o map[string]any
		if err := json.Unmarshal([]byte(a.body), &o); err != nil {
			t.Fatal(err)
		}
		h.do("DELETE", name, "")
		if strings.Contains(a.body, `"finalizers"`) {
			h.do("PATCH", name, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, s := range []string{
		configMap("a", "1"), `{"metadata":{"generateName":"g-"}}`, `{"metadata":null}`, `[]`, `null`, `{"kind":"List"}`, "a: b", "- x",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{}]}}`, `[{"op":"add","path":"/data/x","value":"y"}]`,
		`{"data":{"$patch":"replace"}}`, strings.Repeat("[", 10000), strings.Repeat(`{"a":`, 10000), "a: &a [*a]", "k8s\x00\n",
		`{"metadata":{"name":"a","finalizers":[""]}}`, `{"metadata":{"name":"a","deletionTimestamp":"2020-01-01T00:00:00Z"}}`,
	} {
		for kind := range uint8(8) {
			f.Add([]byte(s), kind)
		}
	}
	h := newHarness(f, rest.Options{}, nothingStays)
	h.do("POST", configMaps, configMap("there", "1")).want(201)
	types := []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
		"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		h := *h
		h.t = t
		before := h.store.Revision()
		method, path, media := "PATCH", configMaps+"/there", types[int(kind)%len(types)]
		switch {
		case kind%8 < 3:
			method, path = "POST", configMaps
		case kind%8 == 6:
			method, media = "PUT", "application/json"
		case kind%8 == 7:
			method, media = "DELETE", "application/json"
			path = configMaps + "/nobody"
		}
		a := h.do(method, path, string(body), "Content-Type", media)
		checkRefusal(t, &h, a, before)
	})
}
