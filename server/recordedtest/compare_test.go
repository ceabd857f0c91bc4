package recordedtest

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	omitted := map[string]bool{"uid": true, "metadata.resourceVersion": true}
	for _, row := range []struct {
		name, want, got string
		same            bool
	}{
		{"equal", `{"a":[1,"x",null]}`, `{"a":[1,"x",null]}`, true},
		{"another value", `{"a":1}`, `{"a":2}`, false},
		{"a large number", `9223372036854775807`, `9223372036854775807`, true},
		{"another large number", `9223372036854775807`, `9223372036854775806`, false},
		{"a field too many", `{"a":1}`, `{"a":1,"b":null}`, false},
		{"a field too few", `{"a":1,"b":null}`, `{"a":1}`, false},
		{"an item too many", `[1]`, `[1,2]`, false},
		{"omitted", `{"a":{}}`, `{"a":{"uid":"5"}}`, true},
		{"omitted, yet recorded and missing", `{"uid":"5"}`, `{}`, false},
		{"omitted, yet recorded and another", `{"uid":"5"}`, `{"uid":"6"}`, false},
		{"omitted below metadata", `{"metadata":{}}`, `{"metadata":{"resourceVersion":"5"}}`, true},
		{"omitted below metadata alone", `{"spec":{}}`, `{"spec":{"resourceVersion":"5"}}`, false},
		{"omitted in items", `[{"a":1}]`, `[{"a":1,"uid":"5"}]`, true},
		{"a time", `"since <time>."`, `"since 2026-01-02T03:04:05.5Z."`, true},
		{"no time", `"<time>"`, `"today"`, false},
		{"a time and more", `"<time>"`, `"2026-01-02T03:04:05Z."`, false},
		{"a version", `"<version>"`, `"12"`, true},
		{"no version", `"<version>"`, `""`, false},
		{"a UID", `"<uid>"`, `"0a1b2c3d-0000-4000-8000-0123456789ab"`, true},
		{"a generated name", `"kube-api-access-<name>"`, `"kube-api-access-x5z2b"`, true},
		{"an age", `"<age>"`, `"3m5s"`, true},
		{"an object for a placeholder", `"<time>"`, `{}`, false},
		{"a placeholder in the answer only", `"2026-01-02T03:04:05Z"`, `"<time>"`, false},
		{"upstream's other space", `"a b"`, "\"a\u00a0b\"", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := compare(values(t, row.want), values(t, row.got), omitted); (diff == "") != row.same {
				t.Errorf("diff %q", diff)
			}
		})
	}
}

// TestCompareFloats compares with numbers as encoding/json reads them.
func TestCompareFloats(t *testing.T) {
	for got, same := range map[float64]bool{1.5: true, 2: false} {
		if diff := compare(values(t, `{"a":1.5}`), []any{map[string]any{"a": got}}, nil); (diff == "") != same {
			t.Errorf("%v: diff %q", got, diff)
		}
	}
}

func values(t *testing.T, text string) []any {
	t.Helper()
	v, err := decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
