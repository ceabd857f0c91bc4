package kind_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/server/kind"
)

// TestValidText has bytes that are not UTF-8 in each place of a value.
func TestValidText(t *testing.T) {
	got := map[string]any{
		"ü":       "ü",
		"a\xffb":  []any{"\xc3\xbc", "\xc3", int64(1), nil, []any{"\xf0\x9f\x98"}},
		"nothing": map[string]any(nil),
		"in":      map[string]any{"\xfe\xfe": map[string]any{"x": "y\x80"}},
	}
	if kind.ValidText("x\xff") != "x\ufffd" {
		t.Error("a text is returned as it is")
	}
	kind.ValidText(got)
	want := map[string]any{
		"ü":        "ü",
		"a\ufffdb": []any{"ü", "\ufffd", int64(1), nil, []any{"\ufffd\ufffd\ufffd"}},
		"nothing":  map[string]any(nil),
		"in":       map[string]any{"\ufffd\ufffd": map[string]any{"x": "y\ufffd"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
