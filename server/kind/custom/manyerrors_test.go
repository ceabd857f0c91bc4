package custom

import (
	"fmt"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

// TestManyErrors validates objects with few and with very many errors, in lists, in maps and in lists of maps.
func TestManyErrors(t *testing.T) {
	five := 5.0
	number := apiextensions.JSONSchemaProps{Type: "integer", Minimum: &five}
	items := func(of apiextensions.JSONSchemaProps) apiextensions.JSONSchemaProps {
		return apiextensions.JSONSchemaProps{Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &of}}
	}
	v, err := newValues(&apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
		"list": items(number),
		"map":  {Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: &number}},
		"deep": items(apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"list": items(number)}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	list := func(n int, value int64) any {
		var all []any
		for range n {
			all = append(all, value)
		}
		return all
	}
	fields := func(n int) any {
		all := map[string]any{}
		for i := range n {
			all[fmt.Sprint(i)] = int64(1)
		}
		return all
	}
	deep := func(n int) any {
		var all []any
		for range n {
			all = append(all, map[string]any{"list": list(1000, 1)})
		}
		return all
	}
	for _, row := range []struct {
		name   string
		object map[string]any
		want   int
	}{
		{"none among many values", map[string]any{"list": list(300_000, 7), "map": fields(0)}, 0},
		{"few among many values", map[string]any{"list": list(300_000, 7), "map": fields(20)}, 20},
		{"as many as are told", map[string]any{"list": list(1000, 1), "map": map[string]any{}, "deep": []any{map[string]any{"list": list(2000, 5)}}}, 1000},
		{"a list", map[string]any{"list": list(300_000, 1)}, 1001},
		{"a map", map[string]any{"map": fields(300_000)}, 1001},
		{"lists of lists", map[string]any{"deep": deep(300)}, 1001},
		{"all of them", map[string]any{"list": list(100_000, 1), "map": fields(100_000), "deep": deep(100)}, 1001},
	} {
		if got := v.Validate(row.object); len(got.Errors) != row.want {
			t.Errorf("%s: %d errors, want %d", row.name, len(got.Errors), row.want)
		}
		if got := v.ValidateUpdate(row.object, map[string]any{}, validation.WithRatcheting(nil)); len(got.Errors) != row.want {
			t.Errorf("%s, updated: %d errors, want %d", row.name, len(got.Errors), row.want)
		}
	}
	// What was wrong before stays as it is: the schema has changed since.
	old := map[string]any{"list": list(3000, 1)}
	if got := v.ValidateUpdate(map[string]any{"list": list(3000, 1), "map": map[string]any{"a": int64(7)}}, old, validation.WithRatcheting(nil)); !got.IsValid() {
		t.Errorf("%d errors that were there before", len(got.Errors))
	}
}
