package rest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/rest"
)

// fieldRow is a body with unknown or duplicate fields.
type fieldRow struct {
	name     string
	how      string // object and yaml: by POST and by PUT; else the method or patchMedia
	on       string // object[/subresource] of patchObjects
	body     string
	warnings string // with Warn and without a directive, divided by |
	strict   string // with Strict: code, reason and message; empty if the request succeeds
}

// typeRow is a body that fails with each directive.
type typeRow struct {
	name, how, on, body string
	code                int
	want                string
}

func deploymentWith(old, new string) string {
	return strings.Replace(patchObjects["deployment"], old, new, 1)
}

// TestFieldValidation sends bodies with unknown, duplicate and wrong fields under each directive.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level
func TestFieldValidation(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		for on := range patchObjects {
			path := fmt.Sprintf(patchPaths[on], "there")
			h.do("POST", path[:strings.LastIndex(path, "/")], patchObjects[on]).want(201)
		}
		for _, row := range fieldRows {
			for _, way := range ways(row.how) {
				t.Run(way+" "+row.on+" "+row.name, func(t *testing.T) { row.run(t, h, way) })
			}
		}
		for _, row := range typeRows {
			for _, way := range ways(row.how) {
				t.Run(way+" "+row.on+" "+row.name, func(t *testing.T) { row.run(t, h, way) })
			}
		}
	})
}

func ways(how string) []string {
	switch how {
	case "object":
		return []string{"POST", "PUT"}
	case "yaml":
		return []string{"POST yaml", "PUT yaml"}
	}
	return []string{how}
}

func (row fieldRow) run(t *testing.T, h *harness, way string) {
	ok := 200
	if strings.HasPrefix(way, "POST") {
		ok = 201
	}
	for directive, warnings := range map[string]string{"": row.warnings, "Warn": row.warnings, "Ignore": ""} {
		a := sendBody(t, h, way, row.on, directive, row.body)
		checkAnswer(t, a, ok, "metadata/name="+a.get("metadata", "name"), warnings)
	}
	a := sendBody(t, h, way, row.on, "Strict", row.body)
	if row.strict == "" {
		checkAnswer(t, a, ok, "metadata/name="+a.get("metadata", "name"), "")
		return
	}
	code, want, _ := strings.Cut(row.strict, " ")
	number, err := strconv.Atoi(code)
	if err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, a, number, want, "")
}

func (row typeRow) run(t *testing.T, h *harness, way string) {
	for _, directive := range []string{"", "Ignore", "Warn", "Strict"} {
		checkAnswer(t, sendBody(t, h, way, row.on, directive, row.body), row.code, row.want, "")
	}
}

// sendBody sends the body as a dry run, so that nothing is written. A POST is for an absent object.
func sendBody(t *testing.T, h *harness, way, on, directive, body string) answer {
	t.Helper()
	here := *h
	here.t = t
	on, sub, isSub := strings.Cut(on, "/")
	path := fmt.Sprintf(patchPaths[on], "there")
	method, media := "PATCH", patchMedia[way]
	if media == "" {
		method, media, _ = strings.Cut(way, " ")
		media = "application/" + cmp.Or(media, "json")
	}
	if method == "POST" {
		path = fmt.Sprintf(patchPaths[on], "empty")
		path = path[:strings.LastIndex(path, "/")]
	}
	if isSub {
		path += "/" + sub
	}
	query := "?dryRun=All&fieldValidation=" + directive
	if way == "apply" {
		query += "&fieldManager=tester&force=true"
	}
	return here.do(method, path+query, body, "Content-Type", media)
}

// TestFieldValidationDirectives wants values other than "Ignore", "Warn" and "Strict" to be refused
// before the body is decoded.
func TestFieldValidationDirectives(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		h.do("POST", configMaps, configMap("a", "1")).want(201)
		for _, row := range []struct{ method, path, media, options string }{
			{"POST", configMaps, "application/json", "CreateOptions"},
			{"PUT", configMaps + "/a", "application/json", "UpdateOptions"},
			{"PATCH", configMaps + "/a", patchMedia["json"], "PatchOptions"},
			{"PATCH", configMaps + "/a", patchMedia["merge"], "PatchOptions"},
			{"PATCH", configMaps + "/a", patchMedia["smp"], "PatchOptions"},
			{"PATCH", configMaps + "/a", patchMedia["apply"], "PatchOptions"},
		} {
			for _, directive := range []string{"nonsense", "strict", "Strict,Warn", " Warn"} {
				t.Run(row.method+" "+row.media+" "+directive, func(t *testing.T) {
					here := *h
					here.t = t
					query := "?fieldManager=x&fieldValidation=" + strings.ReplaceAll(directive, " ", "%20")
					a := here.do(row.method, row.path+query, "{", "Content-Type", row.media)
					checkAnswer(t, a, 422, fmt.Sprintf(
						`Invalid: %s.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: %q: supported values: "", "Ignore", "Strict", "Warn"`,
						row.options, directive), "")
				})
			}
		}
	})
}

// TestFieldValidationIsTruncated wants at most 100 warnings, and their texts to be truncated when
// they are too long in total.
func TestFieldValidationIsTruncated(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		unknown := func(n int) (texts []string) {
			for i := range n {
				texts = append(texts, fmt.Sprintf(`unknown field "nope%03d"`, i))
			}
			return texts
		}
		long := func(n int, name string, times, most int) (texts []string) {
			for i := range n {
				text := []rune(fmt.Sprintf(`unknown field "%s"`, strings.Repeat(fmt.Sprintf(name, i), times)))
				texts = append(texts, string(text[:min(len(text), most)]))
			}
			return texts
		}
		twice := func(n int) (texts []string) {
			for i := range n {
				texts = append(texts, fmt.Sprintf("line %d: key \"nope%03d\" already set in map", 5+2*i, i))
			}
			return texts
		}
		for _, row := range []struct {
			name, media, body string
			want              []string
		}{
			{"99 unknown fields", "json", fieldsNamed(99, "nope%03d", 1), unknown(99)},
			{"100 unknown fields", "json", fieldsNamed(100, "nope%03d", 1), unknown(100)},
			{"more than 100 unknown fields", "json", fieldsNamed(150, "nope%03d", 1), unknown(100)},
			{"one long name", "json", fieldsNamed(1, "n%03d", 1200), long(1, "n%03d", 1200, 256)},
			{"long names within 4,096 characters", "json", fieldsNamed(10, "n%03d", 98), long(10, "n%03d", 98, 4096)},
			{"long names", "json", fieldsNamed(30, "n%03d", 80), long(16, "n%03d", 80, 256)},
			{"the limit counts characters, not bytes", "json", fieldsNamed(30, "é%03d", 80), long(16, "é%03d", 80, 256)},
			{"duplicate fields in YAML", "yaml", doubled(150), twice(99)},
		} {
			t.Run(row.name, func(t *testing.T) {
				here := *h
				here.t = t
				a := here.do("POST", configMaps+"?dryRun=All", row.body, "Content-Type", "application/"+row.media).want(201)
				if got := warningsOf(t, a); got != strings.Join(row.want, " | ") {
					t.Errorf("got\n%s, want\n%s", got, strings.Join(row.want, " | "))
				}
			})
		}
		a := h.do("POST", configMaps+"?dryRun=All&fieldValidation=Strict", fieldsNamed(150, "nope%03d", 1))
		checkAnswer(t, a, 400, `BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: `+strings.Join(unknown(100), ", "), "")
	})
}

// fieldsNamed is a ConfigMap with n unknown fields.
func fieldsNamed(n int, name string, times int) string {
	var b strings.Builder
	b.WriteString(`{"metadata":{"name":"many"}`)
	for i := range n {
		fmt.Fprintf(&b, `,"%s":1`, strings.Repeat(fmt.Sprintf(name, i), times))
	}
	return b.String() + "}"
}

func doubled(n int) string {
	var b strings.Builder
	b.WriteString("metadata: {name: many}\napiVersion: v1\nkind: ConfigMap\n")
	for i := range n {
		fmt.Fprintf(&b, "nope%03d: 1\nnope%03d: 2\n", i, i)
	}
	return b.String()
}

// TestFieldValidationOfProtobuf wants no warnings of unknown fields in protobuf: newer clients may
// send fields that the server does not know.
func TestFieldValidationOfProtobuf(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		raw, err := (&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "proto"}, Data: map[string]string{"key": "1"}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, 0x9a, 0x06, 3, 'z', 'i', 'p') // field 99, a text
		envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}
		body, err := envelope.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		protobuf := []string{"Content-Type", "application/vnd.kubernetes.protobuf", "Accept", "application/json"}
		send := func(method, path, directive string, body []byte) answer {
			return h.do(method, path+"?fieldValidation="+directive, string(slices.Concat([]byte("k8s\x00"), body)), protobuf...)
		}
		for _, directive := range []string{"", "Ignore", "Warn", "Strict"} {
			checkAnswer(t, send("POST", configMaps, directive, body), 201, "data/key=1", "")
			checkAnswer(t, send("PUT", configMaps+"/proto", directive, body), 200, "data/key=1", "")
			h.do("DELETE", configMaps+"/proto", "").want(200)
			envelope.Raw = []byte{0x08, 0x05} // metadata as a number
			wrong, err := envelope.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			checkAnswer(t, send("POST", configMaps, directive, wrong), 400,
				`BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta`, "")
		}
	})
}
