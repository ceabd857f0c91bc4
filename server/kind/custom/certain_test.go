package custom

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// schema makes random schemas, with what a definition may have and what it may not.
func (m maker) schema(depth int) map[string]any {
	s := map[string]any{}
	some := func(name string, one int, value func() any) {
		if m.IntN(one) == 0 {
			s[name] = value()
		}
	}
	pick := func(values ...any) func() any { return func() any { return values[m.IntN(len(values))] } }
	count := func() any { return m.IntN(4) }
	s["type"] = pick("string", "integer", "number", "boolean", "array", "object", "object")()
	if m.IntN(10) == 0 {
		delete(s, "type")
	}
	some("nullable", 3, pick(true, false))
	some("format", 8, pick("int32", "int64", "date-time", "ipv4", "double", "float", "uuid", "nonsense"))
	some("enum", 12, pick([]any{"x", "y"}, []any{1, 2, "x"}, []any{nil}, []any{true}))
	some("pattern", 10, pick("^x", "[a-z]+$", ""))
	some("x-kubernetes-int-or-string", 15, pick(true))
	for _, name := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		some(name, 8, count)
	}
	for _, name := range []string{"minimum", "maximum"} {
		some(name, 6, pick(2, 3, 2.5, 1e12, -1))
	}
	some("exclusiveMinimum", 6, pick(true))
	some("exclusiveMaximum", 6, pick(true))
	some("multipleOf", 15, pick(2, 0.5))
	some("uniqueItems", 15, pick(true))
	some("required", 6, pick([]any{"a"}, []any{"a", "b"}))
	if depth == 0 {
		return s
	}
	below := func() any { return m.schema(depth - 1) }
	some("items", 2, below)
	some("additionalProperties", 6, below)
	some("additionalProperties", 20, pick(true, false))
	some("not", 20, below)
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		some(name, 12, func() any { return []any{below(), below()} })
	}
	properties := map[string]any{}
	for _, name := range []string{"a", "b", "c", "list", "object"} {
		if m.IntN(2) == 0 {
			properties[name] = below()
		}
	}
	s["properties"] = properties
	return s
}

func valuesOf(t *testing.T, raw []byte) *values {
	t.Helper()
	var external apiextensionsv1.JSONSchemaProps
	var internal apiextensions.JSONSchemaProps
	if err := json.Unmarshal(raw, &external); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		t.Fatal(err)
	}
	v, err := newValues(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCertain: certain values are valid, and most valid values are certain.
func TestCertain(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(11, 13))}
	valid, sure := 0, 0
	for range 1000 {
		raw, err := json.Marshal(m.schema(3))
		if err != nil {
			t.Fatal(err)
		}
		v := valuesOf(t, raw)
		for range 60 {
			value := m.value(4)
			if m.IntN(10) == 0 {
				value = []any{int64(1) << 31, int64(-1) << 40, int64(1<<53 + 1), 1e300}[m.IntN(4)]
			}
			upstreams := v.SchemaValidator.Validate(value)
			if upstreams.IsValid() {
				valid++
			}
			if !v.shape.certain(value) {
				continue
			}
			if sure++; !upstreams.IsValid() {
				t.Fatalf("%v is not valid by %s: %v", value, raw, upstreams.Errors)
			}
		}
	}
	if valid < 5000 || sure < valid/2 {
		t.Errorf("of %d valid values %d were certain", valid, sure)
	}
}

// TestCertainIntegers checks numbers that random values do not reach.
func TestCertainIntegers(t *testing.T) {
	for schema, numbers := range map[string][]int64{
		`{"type":"integer","format":"int32"}`:                    {1<<31 - 1, 1 << 31, -1 << 31, -1<<31 - 1},
		`{"type":"integer","format":"int32","maximum":5}`:        {5, 6, -1 << 40},
		`{"type":"integer","format":"int64","minimum":3}`:        {3, 2, 1 << 62, 1<<53 + 1},
		`{"type":"integer","maximum":4294967297,"minimum":-0.5}`: {1 << 32, 1<<32 + 2, 0, -1},
		`{"type":"number","maximum":3}`:                          {3, 4},
	} {
		v := valuesOf(t, []byte(schema))
		for _, n := range numbers {
			if valid := v.SchemaValidator.Validate(n).IsValid(); v.shape.certain(n) && !valid {
				t.Errorf("%d by %s is not valid", n, schema)
			}
		}
	}
}
