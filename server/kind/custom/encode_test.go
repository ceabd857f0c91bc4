package custom

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestEncodeLayout(t *testing.T) {
	for _, k := range toys(t, nil) {
		obj, _, err := k.Codec.Decode([]byte(`{"apiVersion":"example.com/`+k.Versions[0].Name+`","kind":"Toy","zeta":1,
			"metadata":{"name":"x","resourceVersion":"7","selfLink":"/x","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"}},"spec":{"a":"<&>"}}`), "application/json", schema.GroupVersionKind{}, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Codec.Encode(obj)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"kind":"Toy","apiVersion":"example.com/v1","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"labels":{"a":"b"},"name":"x"},"spec":{"a":"\u003c\u0026\u003e","b":2}}`
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s: %s", k.Versions[0].Name, diff)
		}
	}
}

// TestEncode: values are written as encoding/json writes them.
func TestEncode(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(3, 3))}
	for range puzzles / 4 {
		value := m.value(4)
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendValue(nil, value)
		if err != nil || !bytes.Equal(want, got) {
			t.Fatalf("%s instead of %s, %v", got, want, err)
		}
	}
	u := m.puzzle()
	u.SetResourceVersion("7")
	got, err := encodeStored(u.Object)
	if err != nil || !strings.HasPrefix(string(got), `{"kind":"Puzzle","apiVersion":"example.com/v1","metadata":{`) || strings.Contains(string(got), "resourceVersion") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestEncodeNegativeZero: kube-apiserver reads what it has stored, and shows 0.
func TestEncodeNegativeZero(t *testing.T) {
	for _, text := range []string{"-0.0", "-0", "-0e3", "0.0", "-0.00e-7", "0"} {
		value := map[string]any{}
		if err := utiljson.Unmarshal([]byte(`{"n":`+text+`,"list":[`+text+`]}`), &value); err != nil {
			t.Fatal(err)
		}
		got, err := appendValue(nil, value)
		if err != nil || string(got) != `{"list":[0],"n":0}` {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
