package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// aliased is YAML of a value and a name for it in each of n fields.
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

// YAML that is small on the wire and huge in memory is refused before it is; what isn't
// huge works.
func TestYAMLAliases(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there}\n"
	const tooLong = "Request entity too large: The aliases in the YAML make it longer than 3145728 bytes"
	long := strings.Repeat("x", 100<<10)
	nested := head + "a0: &a0 [x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		nested += fmt.Sprintf("a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i+1, i+1, i, i, i, i, i, i)
	}
	h := newHarness(t, rest.Options{})
	h.do(http.MethodPost, configMaps, configMap("there", "1")).want(201)
	for _, row := range []struct {
		name, body string
		code       int // 0: the write succeeds
		want       string
	}{
		{"a few", aliased(head, "1", 3), 0, `"k2":"1"`},
		{"a sign that names nothing", head + "data:\n  a: \"R&D *\"\n", 0, `"a":"R\u0026D *"`},
		{"of a long value", aliased(head, long, 2000), 413, tooLong},
		{"of each other", nested, 413, tooLong},
		{"of what it is in", head + "data: &d\n  a: b\n  c: *d\n", 400, "anchor 'd' value contains itself"},
		{"in what is not YAML to everybody", aliased(head+"\x01: x\n", long, 2000), 413, tooLong},
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
