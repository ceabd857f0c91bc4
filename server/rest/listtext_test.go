package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/rest"
)

// TestListText compares lists in indented JSON and in YAML with what the list in JSON becomes if it is indented, or
// converted, in one piece.
func TestListText(t *testing.T) {
	h := newHarnessWith(t, "sqlite://:memory:", inMemory, rest.Options{})
	const metadata = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	compare := func(n int) {
		t.Helper()
		for _, query := range []string{"?", "?limit=2", "?labelSelector=none"} {
			for _, as := range []string{"", metadata} {
				want := h.do("GET", configMaps+query, "", "Accept", "application/json"+as).want(200).body
				var indented bytes.Buffer
				if err := json.Indent(&indented, []byte(want[:len(want)-1]), "", "  "); err != nil {
					t.Fatal(err)
				}
				converted, err := yaml.JSONToYAML([]byte(want))
				if err != nil {
					t.Fatal(err)
				}
				for accept, text := range map[string]string{"application/json;pretty=1": indented.String(), "application/yaml": string(converted)} {
					if got := h.do("GET", configMaps+query, "", "Accept", accept+as).want(200).body; got != text {
						t.Errorf("%d objects, %s as %s%s:\n%s\nwant\n%s", n, query, accept, as, got, text)
					}
				}
			}
		}
	}
	compare(0)
	for i, value := range []string{"", "null", "- null\n", "  lines\n\n of text\n\n", "trailing \t\n", "{\"items\":[null]}", "\u00e9\u2028: # \x07", "1e3", "|-\n x"} {
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": fmt.Sprint("c", i), "annotations": map[string]string{"items": value}},
			"data":     map[string]string{"null": value, "items": "- null"},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.do("POST", configMaps, string(body)).want(201)
		compare(i + 1)
	}
}
