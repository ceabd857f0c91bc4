package fieldsets

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// parse reads an object.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// managed is an object with a manager for each set of fields.
func managed(t testing.TB, sets ...string) map[string]any {
	t.Helper()
	managers := []any{map[string]any{"manager": "without fields"}}
	for _, set := range sets {
		var fields any
		if err := yaml.Unmarshal([]byte(set), &fields); err != nil {
			t.Fatal(err)
		}
		managers = append(managers, map[string]any{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": fields})
	}
	return map[string]any{"metadata": map[string]any{"managedFields": managers}}
}

// known are the lists of the objects in tests: ports by port and protocol, each with env by name; a set; and conditions.
func known(t testing.TB) *Lists {
	return ListsOf(managed(t, `{"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:env":{"k:{\"name\":\"a\"}":{"f:value":{}}}}},
		"f:set":{"v:\"a\"":{}},"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{}}}}}`))
}
