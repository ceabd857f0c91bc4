package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestSelectors lists with label and field selectors.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
// https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
func TestSelectors(t *testing.T) {
	h := newHarness(t, rest.Options{})
	for i := range 25 {
		h.do("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"c%02d","labels":{"mod":"%d"}}}`, i, i%5)).want(201)
	}
	names := func(a answer) (list []string) {
		var body struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatal(err)
		}
		for _, item := range body.Items {
			list = append(list, item.Metadata.Name)
		}
		return list
	}
	a := h.do("GET", configMaps+"?labelSelector=mod%3D1", "").want(200)
	if got := fmt.Sprint(names(a)); got != "[c01 c06 c11 c16 c21]" {
		t.Errorf("label selector: %s", got)
	}
	a = h.do("GET", configMaps+"?labelSelector=mod&limit=3", "").want(200)
	if a.get("metadata", "remainingItemCount") != "" || a.get("metadata", "continue") == "" {
		t.Errorf("selected page: %s", a.body)
	}
	// No object has an empty name: the selector selects nothing, not everything.
	for _, empty := range []string{"metadata.name%3D", "metadata.name%3D%2Cmetadata.namespace%3Ddefault"} {
		before := h.store.Revision()
		if a = h.do("GET", configMaps+"?fieldSelector="+empty, "").want(200); len(names(a)) != 0 {
			t.Errorf("%s selects %v", empty, names(a))
		}
		if h.do("DELETE", configMaps+"?fieldSelector="+empty, "").want(200); h.store.Revision() != before {
			t.Fatalf("%s deleted something", empty)
		}
	}
	a = h.do("GET", configMaps+"?fieldSelector=metadata.name%3Dc03", "").want(200)
	if got := fmt.Sprint(names(a)); got != "[c03]" {
		t.Errorf("field selector: %s", got)
	}
	empty := h.do("GET", "/api/v1/namespaces/none/configmaps", "").want(200)
	if !strings.Contains(empty.body, `"items":[]`) {
		t.Errorf("empty list: %s", empty.body)
	}
}
