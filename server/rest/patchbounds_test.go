package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestPatchBounds sends patches at and beyond the bounds on operations, nesting and lists.
func TestPatchBounds(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		h.do("POST", configMaps, configMap("bounds", strings.Repeat("x", 1000))).want(201)
		bomb := []string{`{"op":"add","path":"/x0","value":{}}`, `{"op":"copy","from":"/data","path":"/x0/a"}`}
		for i := range 40 {
			bomb = append(bomb, fmt.Sprintf(`{"op":"copy","from":"/x0","path":"/x0/c%d"}`, i))
		}
		operations := func(n int) string {
			return "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/none","value":null},`, n), ",") + "]"
		}
		nested := func(n int) string { return `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
		wrapped := func(n, size int) string {
			return `{"x":` + strings.Repeat("[", n) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat("]", n) + `}`
		}
		items := func(n int) string {
			return `{"metadata":{"ownerReferences":[` + strings.TrimSuffix(strings.Repeat(`{"uid":"u"},`, n), ",") + `]}}`
		}
		long := func(n int) string { return `{"data":{"key":"` + strings.Repeat("x", n) + `"}}` }
		const limit, around = 3 << 20, len(`{"data":{"key":""}}`)
		for _, row := range []struct {
			name, media, patch string
			code               int
			want, warnings     string
		}{
			{"10,000 operations", "json", operations(10000), 200, "data/other=", ""},
			{"10,001 operations", "json", operations(10001), 413, "RequestEntityTooLarge: Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001", ""},
			{"copies of copies", "json", "[" + strings.Join(bomb, ",") + "]", 422, rejected, ""},
			{"nested", "merge", nested(1000), 200, "data/other=", `unknown field "x"`},
			{"nested, strategic", "smp", nested(9990), 200, "data/other=", `unknown field "x"`},
			{"nested too deep", "merge", nested(10001), 400, "BadRequest: invalid JSON patch", ""},
			{"nested too deep, strategic", "smp", nested(10001), 400, "BadRequest: invalid JSON patch", ""},
			{"nested too deep for JSON Patch", "json", nested(10001), 400, "BadRequest: invalid JSON patch", ""},
			{"nested too deep, fields ignored", "merge?fieldValidation=Ignore", nested(10001), 400, "BadRequest: invalid JSON patch", ""},
			{"nested too deep for its length", "merge", wrapped(1000, 1<<20), 413, "RequestEntityTooLarge: Request entity too large: The patch is nested too deep for its length", ""},
			{"nested too deep for its length, JSON Patch", "json", "[" + wrapped(1000, 1<<20) + "]", 413, "RequestEntityTooLarge: Request entity too large: The patch is nested too deep for its length", ""},
			{"lists too long", "smp", items(11000), 413, "RequestEntityTooLarge: Request entity too large: The lists in the patch are too long", ""},
			{"the longest body", "merge", long(limit - around), 422, `Invalid: ConfigMap "bounds" is invalid: []: Too long: may not be more than 1048576 bytes`, ""},
			{"a longer body", "merge", long(limit - around + 1), 413, "RequestEntityTooLarge: Request entity too large: limit is 3145728", ""},
			{"bytes that are not UTF-8", "merge", "{\"data\":{\"other\":\"a\xffb\"}}", 200, "data/other=a\ufffdb", ""},
			{"half of a surrogate pair", "merge", `{"data":{"other":"a\ud800b"}}`, 200, "data/other=a\ufffdb", ""},
		} {
			t.Run(row.name, func(t *testing.T) {
				here := *h
				here.t = t
				media, query, _ := strings.Cut(row.media, "?")
				a := here.do("PATCH", configMaps+"/bounds?"+query, row.patch, "Content-Type", patchMedia[media])
				checkAnswer(t, a, row.code, row.want, row.warnings)
			})
		}
	})
}
