package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/rest"
)

// definitionOf is a definition in bad.example.com with the schema of its spec.
func definitionOf(spec string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"bads.bad.example.com"},
		"spec":{"group":"bad.example.com","scope":"Cluster","names":{"plural":"bads","kind":"Bad"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":` + spec + `}}}}]}}`
}

func within(n int, open, inner, end string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

func object20000(format string) string {
	var fields []string
	for i := range 20000 {
		fields = append(fields, fmt.Sprintf(format, i))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// costlyDefinitions are schemas that cost too much to compile or to validate with, and some that
// only look so.
var costlyDefinitions = []struct{ name, body, want string }{
	{"a schema of 5,000 nested objects", definitionOf(within(5000, `{"type":"object","properties":{"a":`, `{"type":"string"}`, `}}`)),
		`413 Request entity too large: The body is nested too deep for its length`},
	{"a schema of 9,000 nested arrays", definitionOf(within(9000, `{"type":"array","items":`, `{"type":"string"}`, `}`)),
		`413 Request entity too large: The body is nested too deep for its length`},
	{"a schema that is nested too deep for its size", definitionOf(within(250, `{"type":"object","properties":{"a":`,
		`{"type":"object","properties":`+object20000(`"p%d":{}`)+`}`, `}}`)),
		`422 is invalid: spec.validation.openAPIV3Schema: Forbidden: is nested too deep for its size`},
	{"a schema of 200 nested arrays", definitionOf(within(200, `{"type":"array","items":`, `{"type":"string"}`, `}`)), `201 `},
	{"a hundred nested allOf", definitionOf(`{"type":"string","allOf":[` + within(100, `{"allOf":[`, `{"maxLength":1}`, `]}`) + `]}`), `201 `},
	{"a regular expression that grows when it is compiled", definitionOf(`{"type":"string","pattern":"((a{0,100}){0,100}){0,100}"}`), `422 must be a valid regular expression`},
	{"a CEL rule of a thousand parentheses", definitionOf(`{"type":"string","x-kubernetes-validations":[{"rule":"` + within(1000, "(", "true", ")") + `"}]}`), `422 expression recursion limit exceeded`},
	{"a CEL rule that looks at each pair of pairs", definitionOf(`{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x.contains(y)))"}]}`),
		`422 estimated rule cost exceeds budget by factor of more than 100x`},
	{"a schema that contradicts itself", definitionOf(`{"type":"string","minLength":5,"maxLength":1,"allOf":[{"enum":["a"]},{"enum":["b"]}]}`), `201 `},
	{"a default that contradicts its schema", definitionOf(`{"type":"object","properties":{"a":{"type":"string","minLength":5,"default":"a"}}}`), `422 Invalid value: "a"`},
	{"not a schema", definitionOf(`[]`), `400 cannot unmarshal array into Go struct field`},
}

func TestCostlyDefinitions(t *testing.T) {
	h := newHarness(t, rest.Options{})
	for _, row := range costlyDefinitions {
		t.Run(row.name, func(t *testing.T) {
			own := *h
			own.t = t
			head := h.store.Revision()
			check := func(a answer, want string) {
				t.Helper()
				text := a.body
				if a.code >= 400 {
					text = a.get("message")
				}
				code, message, _ := strings.Cut(want, " ")
				if fmt.Sprint(a.code) != code || !strings.Contains(text, message) {
					t.Errorf("got %d %.300s\nwant %s", a.code, text, want)
				}
			}
			begun := time.Now()
			check(own.do("POST", definitionsPath+"?dryRun=All", row.body), row.want)
			if took := time.Since(begun); took > 5*time.Minute {
				t.Errorf("took %v", took)
			}
			if strings.HasPrefix(row.want, "413") {
				const path = definitionsPath + "/bads.bad.example.com"
				check(own.do("PATCH", path+"?fieldManager=m", row.body, "Content-Type", "application/apply-patch+yaml"), row.want)
				check(own.do("PUT", path+"/status", row.body), row.want)
			}
			if now := h.store.Revision(); now != head {
				t.Errorf("the revision went from %d to %d", head, now)
			}
		})
	}
}

// TestDefaultsThatExplode has defaults in list items, which make a large object of a small body.
func TestDefaultsThatExplode(t *testing.T) {
	h := newHarness(t, rest.Options{})
	h.serveDefinitions()
	var fields []string
	for i := range 100 {
		fields = append(fields, fmt.Sprintf(`"p%d":{"type":"string","default":"%0200d"}`, i, i))
	}
	item := `{"type":"object","properties":{` + strings.Join(fields, ",") + `}}`
	h.define(definitionOf(`{"type":"object","properties":{"list":{"type":"array","items":` + item + `},"map":{"type":"object","additionalProperties":` + item + `},
		"default":{"type":"object","properties":{"list":{"type":"array","default":[` + strings.TrimSuffix(strings.Repeat("{},", 50), ",") + `],"items":` + item + `}}}}}`))
	const path = "/apis/bad.example.com/v1/bads"
	object := func(spec string) string {
		return `{"apiVersion":"bad.example.com/v1","kind":"Bad","metadata":{"name":"a"},"spec":{` + spec + `}}`
	}
	items := func(n int) string { return strings.TrimSuffix(strings.Repeat("{},", n), ",") }
	h.do("POST", path, object(`"list":[`+items(10)+`]`)).want(201)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, spec := range []string{`"list":[` + items(50_000) + `]`, `"map":` + object20000(`"k%d":{}`), `"list":[` + strings.Repeat("null,", 20000) + `{}]` + `,"map":` + object20000(`"k%d":{}`)} {
		for _, a := range []answer{
			h.do("POST", path, strings.Replace(object(spec), `"name":"a"`, `"name":"b"`, 1)),
			h.do("PATCH", path+"/a", object(spec), "Content-Type", "application/merge-patch+json"),
		} {
			if a.code != 413 || !strings.Contains(a.get("message"), "The defaults of the schema make the object longer than 8388608 bytes") {
				t.Errorf("got %d %.200s", a.code, a.body)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 2048 {
		t.Errorf("%d MiB were allocated", grown)
	}
	if got := h.do("GET", path+"/a", "").get("spec", "list", "9", "p99"); !strings.HasSuffix(got, "99") {
		t.Errorf("got %q", got)
	}
	h.do("POST", path, strings.Replace(object(`"default":{}`), `"name":"a"`, `"name":"c"`, 1)).want(201)
}

// TestDeepDefinitionsInCBOR has the bounds on nesting hold for CBOR as for JSON.
func TestDeepDefinitionsInCBOR(t *testing.T) {
	h := newHarness(t, rest.Options{CBOR: true})
	for _, row := range []struct {
		levels, want int
		message      string
	}{{4000, 413, "Request entity too large: The body is nested too deep for its length"}, {200, 201, ""}} {
		body := toCBOR(definitionOf(within(row.levels, `{"type":"array","items":`, `{"type":"string"}`, `}`)))
		begun := time.Now()
		a := h.do("POST", definitionsPath, body, "Content-Type", inCBOR).want(row.want)
		if got := a.get("message"); got != row.message || time.Since(begun) > time.Minute {
			t.Errorf("%d levels: %s after %v", row.levels, got, time.Since(begun))
		}
	}
}

// TestDeepObjects nests custom objects as deep as the JSON decoder allows.
func TestDeepObjects(t *testing.T) {
	h := newHarness(t, rest.Options{})
	h.serveDefinitions()
	h.define(definitionOf(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`))
	for _, row := range []struct {
		depth, code int
	}{{1000, 201}, {20000, 400}} {
		name := fmt.Sprintf("d%d", row.depth)
		h.do("POST", "/apis/bad.example.com/v1/bads", `{"apiVersion":"bad.example.com/v1","kind":"Bad","metadata":{"name":"`+name+`"},"spec":`+
			within(row.depth, `{"a":`, "1", "}")+`}`).want(row.code)
		if row.code != 201 {
			continue
		}
		var o any
		if err := json.Unmarshal([]byte(h.do("GET", "/apis/bad.example.com/v1/bads/"+name, "").want(200).body), &o); err != nil {
			t.Error(err)
		}
	}
}

// aliased is YAML with an anchored value and n fields that are aliases of it.
func aliased(head, value string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sdata:\n  first: &v \"%s\"\n", head, value)
	for i := range n {
		fmt.Fprintf(&b, "  k%d: *v\n", i)
	}
	return b.String()
}

// yamlWrites are the ways in which a client can send YAML.
var yamlWrites = []struct{ name, method, path, media string }{
	{"create", http.MethodPost, configMaps + "?dryRun=All", "application/yaml"},
	{"update", http.MethodPut, configMaps + "/there?dryRun=All", "application/yaml"},
	{"apply", http.MethodPatch, configMaps + "/there?dryRun=All&fieldManager=me&force=true", "application/apply-patch+yaml"},
}

// TestYAMLAliases sends YAML whose aliases expand to a huge document. The server refuses it before
// it expands it; small documents with aliases are accepted.
func TestYAMLAliases(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there}\n"
	const tooLong = "Request entity too large: The aliases in the YAML make it longer than 3145728 bytes"
	long := strings.Repeat("x", 100<<10)
	nested := head + "a0: &a0 [x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		nested += fmt.Sprintf("a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i+1, i+1, i, i, i, i, i, i)
	}
	h := newHarness(t, rest.Options{}, nothingStays)
	h.do(http.MethodPost, configMaps, configMap("there", "1")).want(201)
	for _, row := range []struct {
		name, body string
		code       int // 0: the write succeeds
		want       string
	}{
		{"a few aliases", aliased(head, "1", 3), 0, `"k2":"1"`},
		{"an ampersand and an asterisk in a string", head + "data:\n  a: \"R&D *\"\n", 0, `"a":"R\u0026D *"`},
		{"aliases of a long value", aliased(head, long, 2000), 413, tooLong},
		{"nested aliases", nested, 413, tooLong},
		{"an alias of the map that contains it", head + "data: &d\n  a: b\n  c: *d\n", 400, "anchor 'd' value contains itself"},
		{"aliases behind a character that not every YAML parser accepts", aliased(head+"\x01: x\n", long, 2000), 413, tooLong},
	} {
		for _, way := range yamlWrites {
			t.Run(row.name+"/"+way.name, func(t *testing.T) {
				h := *h
				h.t = t
				body := row.body
				if way.name == "create" {
					body = strings.Replace(body, "{name: there}", "{name: new}", 1)
				}
				a := h.do(way.method, way.path, body, "Content-Type", way.media)
				if row.code == 0 && a.code >= 300 || row.code != 0 && a.code != row.code || !strings.Contains(a.body, row.want) {
					t.Errorf("%d %.400s", a.code, a.body)
				}
			})
		}
	}
	options := "apiVersion: v1\nkind: DeleteOptions\nx: &v \"" + long + "\"\ny: [" + strings.Repeat("*v,", 1000) + "]\n"
	h.do(http.MethodDelete, configMaps+"/there", options, "Content-Type", "application/yaml").want(413)
}
