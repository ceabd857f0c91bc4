package rest_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// fifty is a definition with fifty fields and three CEL rules.
func fifty() string {
	var fields strings.Builder
	for i := range 50 {
		fmt.Fprintf(&fields, `"field%d":{"type":"string","maxLength":100},`, i)
	}
	rule := func(i int) string {
		return fmt.Sprintf(`{"rule":"self.field%d != 'never' && (self.field%d.size() < 50)","message":"no"}`, i, i)
	}
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"fifties.bench.example.com"},
		"spec":{"group":"bench.example.com","scope":"Namespaced","names":{"plural":"fifties","kind":"Fifty"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[` + rule(0) + `,` + rule(1) + `,` + rule(2) + `],
		"properties":{` + strings.TrimSuffix(fields.String(), ",") + `}}}}}}]}}`
}

// values are fifty fields with fifty values.
func values(v string) string {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, `"field%d":"%s %d",`, i, v, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// BenchmarkCustom compares the verbs on a custom resource with those on a ConfigMap of the same
// size, from the request to the answer.
func BenchmarkCustom(b *testing.B) {
	h := newHarness(b, rest.Options{})
	h.serveDefinitions()
	h.define(fifty())
	for _, kind := range []struct{ name, path, open, close string }{
		{"custom", "/apis/bench.example.com/v1/namespaces/default/fifties", `{"apiVersion":"bench.example.com/v1","kind":"Fifty","spec":{`, `}`},
		{"configmap", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","data":{`, `}`},
	} {
		object := func(name, v string) string {
			return kind.open + values(v) + kind.close + `,"metadata":{"name":"` + name + `"}}`
		}
		send := func(method, path, body string, code int) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if method == "PATCH" {
				r.Header.Set("Content-Type", "application/merge-patch+json")
			}
			if h.ServeHTTP(w, r); w.Code != code {
				b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		n := 0
		b.Run("create/"+kind.name, func(b *testing.B) {
			for b.Loop() {
				send("POST", kind.path, object(fmt.Sprint("a-", n), "value"), 201)
				n++
			}
		})
		b.Run("update/"+kind.name, func(b *testing.B) {
			field := map[string]string{"custom": "spec", "configmap": "data"}[kind.name]
			for b.Loop() {
				send("PATCH", kind.path+"/a-0", fmt.Sprintf(`{%q:{"field7":"value %d"}}`, field, n), 200)
				n++
			}
		})
		b.Run("get/"+kind.name, func(b *testing.B) {
			for b.Loop() {
				send("GET", kind.path+"/a-0", "", 200)
			}
		})
	}
}

// BenchmarkDefine is the time from a definition to the first object.
func BenchmarkDefine(b *testing.B) {
	h := newHarness(b, rest.Options{})
	h.serveDefinitions()
	n := 0
	for b.Loop() {
		group := fmt.Sprintf("g%d.example.com", n)
		n++
		h.do("POST", definitionsPath, widgets(b, group)).want(201)
		path, body := "/apis/"+group+"/v1/namespaces/default/widgets", `{"apiVersion":"`+group+`/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"color":"red"}}`
		for h.do("POST", path, body).code != 201 {
		}
	}
}
