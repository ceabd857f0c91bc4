package custom

import (
	"fmt"
	"strings"
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
		{"none among many values", map[string]any{"list": list(60_000, 7), "map": fields(0)}, 0},
		{"few among many values", map[string]any{"list": list(60_000, 7), "map": fields(20)}, 20},
		{"as many as are told", map[string]any{"list": list(1000, 1), "map": map[string]any{}, "deep": []any{map[string]any{"list": list(2000, 5)}}}, 1000},
		{"a list", map[string]any{"list": list(60_000, 1)}, 1001},
		{"a map", map[string]any{"map": fields(60_000)}, 1001},
		{"lists of lists", map[string]any{"deep": deep(60)}, 1001},
		{"all of them", map[string]any{"list": list(20_000, 1), "map": fields(20_000), "deep": deep(20)}, 1001},
	} {
		if got := v.Validate(row.object); len(got.Errors) != row.want {
			t.Errorf("%s: %d errors, want %d", row.name, len(got.Errors), row.want)
		}
		if got := v.ValidateUpdate(row.object, map[string]any{}, validation.WithRatcheting(nil)); len(got.Errors) != row.want {
			t.Errorf("%s, updated: %d errors, want %d", row.name, len(got.Errors), row.want)
		}
	}
	// What was wrong before stays as it is: the schema has changed since.
	for _, row := range []struct {
		name     string
		old, new map[string]any
		want     int
	}{
		{"many that were there", map[string]any{"list": list(3000, 1)}, map[string]any{"list": list(3000, 1), "map": map[string]any{"a": int64(7)}}, 0},
		{"many, and more values", map[string]any{"list": list(1500, 1)}, map[string]any{"list": list(1500, 1), "deep": []any{map[string]any{"list": list(600, 7)}}}, 0},
		{"some that were there, and some that were not", map[string]any{"list": list(900, 1)}, map[string]any{"list": list(900, 1), "map": fields(200)}, 200},
	} {
		if got := v.ValidateUpdate(row.new, row.old, validation.WithRatcheting(nil)); len(got.Errors) != row.want {
			t.Errorf("%s: %d errors, want %d", row.name, len(got.Errors), row.want)
		}
	}
}

// TestLongPaths validates lists below fields with long names, whose errors have these names.
func TestLongPaths(t *testing.T) {
	five := 5.0
	number := apiextensions.JSONSchemaProps{Type: "integer", Minimum: &five}
	list := apiextensions.JSONSchemaProps{Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &number}}
	v, err := newValues(&apiextensions.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: &list}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, values int
		wrong        int // of them
		most         int
	}{
		{1 << 20, 500_000, 1, 1},
		{1 << 20, 100, 100, 3},
		{100_000, 2000, 2000, 20},
		{100, 2000, 20, 20},
	} {
		var values []any
		for i := range row.values {
			values = append(values, int64(7))
			if i < row.wrong {
				values[i] = int64(1)
			}
		}
		got := v.Validate(map[string]any{strings.Repeat("x", row.name): values})
		if len(got.Errors) < 1 || len(got.Errors) > row.most {
			t.Errorf("a name of %d bytes above %d values: %d errors, want %d at most", row.name, row.values, len(got.Errors), row.most)
		}
	}
}
