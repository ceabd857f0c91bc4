package fieldsets

import (
	"slices"
	"testing"
)

func TestLearn(t *testing.T) {
	k := ListsOf(managed(t,
		`{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{"f:name":{}}}}},"f:args":{}}}`,
		`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}},"f:labels":{"f:k:x":{}}}}`,
		`{"f:spec":"damaged"}`,
	))
	spec := func(l *Lists) *Lists { return l.Field("spec") }
	places := []struct {
		name string
		at   func(*Lists) *Lists
		want []string
		none bool
	}{
		{"a key", func(l *Lists) *Lists { return spec(l).Field("containers") }, []string{"name"}, false},
		{"two keys, in a list", func(l *Lists) *Lists { return spec(l).Field("containers").Items().Field("ports") }, []string{"containerPort", "protocol"}, false},
		{"a set", func(l *Lists) *Lists { return l.Field("metadata").Field("finalizers") }, nil, false},
		{"an atomic list", func(l *Lists) *Lists { return spec(l).Field("args") }, nil, true},
		{"a map", func(l *Lists) *Lists { return l.Field("metadata").Field("labels") }, nil, true},
		{"the same name elsewhere", func(l *Lists) *Lists { return l.Field("containers") }, nil, true},
		{"items that are no lists", func(l *Lists) *Lists { return spec(l).Field("containers").Items() }, nil, true},
	}
	for _, row := range places {
		keys := row.at(k).Keys()
		if (keys == nil) != row.none || keys != nil && !slices.Equal(keys.Fields, row.want) {
			t.Errorf("%s: %v", row.name, keys)
		}
		for name, none := range map[string]*Lists{"nil": nil, "nobody": ListsOf(), "no manager": ListsOf(map[string]any{"kind": "K"})} {
			if row.at(none).Keys() != nil {
				t.Errorf("%s: known of %s", row.name, name)
			}
		}
	}
	k.Learn(managed(t, `{"f:spec":{"f:containers":{"k:{\"id\":1}":{"f:name":{}}}}}`))
	if keys := spec(k).Field("containers").Keys(); !slices.Equal(keys.Fields, []string{"id"}) {
		t.Errorf("after a change of the schema: %v", keys)
	}
}

// TestLearnMalformed has managedFields that no server writes, but an import may bring.
func TestLearnMalformed(t *testing.T) {
	for _, text := range []string{
		`{}`, `{metadata: 1}`, `{metadata: {managedFields: {}}}`, `{metadata: {managedFields: [1, null, [], {fieldsV1: 1}, {fieldsV1: [1]}]}}`,
	} {
		if l := ListsOf(parse(t, text)); l.fields != nil || l.keys != nil {
			t.Errorf("%s: %+v", text, l)
		}
	}
	for _, set := range []string{
		`{"f:l":{"k:":{}}}`, `{"f:l":{"k:{":{}}}`, `{"f:l":{"k:[]":{}}}`, `{"f:l":{"k:{}":{}}}`, `{"f:l":{"v:":{}}}`, `{"f:l":{"i:0":{}}}`,
		`{"f:l":{"i:x":{}}}`, `{"f:l":{"x:1":{}}}`, `{"f:l":{"":{}}}`, `{"f:l":{"k:{\"a\":1}":1}}`, `{"f:l":{"k:{\"a\":1}":null}}`, `{"f:l":[]}`, `["f:l"]`, `{"l":{"k:{\"a\":1}":{}}}`,
		`{"f:l":{"k:{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,\"k\":1,\"l\":1,\"m\":1,\"n\":1,\"o\":1,\"p\":1,\"q\":1}":{}}}`,
	} {
		if keys := ListsOf(managed(t, set)).Field("l").Keys(); keys != nil {
			t.Errorf("%s: %v", set, keys)
		}
	}
}
