package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// definition is one CustomResourceDefinition of the suite.
type definition struct {
	group, plural, kind string
	body                []byte // JSON
}

func (d *definition) path() string {
	return "/apis/" + d.group + "/v1/namespaces/bench/" + d.plural
}

// object returns the smallest object that the definition's schema accepts.
func (d *definition) object(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":%q},"spec":{"mode":"Auto","replicas":2,"minimum":1,"maximum":3}}`,
		d.group, d.kind, name)
}

// perGroup is the number of definitions in a group. An operator has a few definitions; a suite of
// operators, such as one for each service of a cloud, has many groups.
const perGroup = 20

// newDefinition returns definition i of a suite, always the same. It has fifty to three hundred
// fields with descriptions, which make 10 to 60 KiB, as in definitions of real operators. Every
// fourth has two versions.
func newDefinition(suite string, i int) *definition {
	w := writer{rand.New(rand.NewPCG(uint64(i), 500))}
	d := &definition{
		group:  fmt.Sprintf("%s%02d.bench.example.com", suite, i/perGroup),
		plural: fmt.Sprintf("things%03d", i),
		kind:   fmt.Sprintf("Thing%03d", i),
	}
	fields := 50 + w.IntN(250)
	versions := []any{w.version("v1", true, fields)}
	if i%4 == 0 {
		versions = append(versions, w.version("v1beta1", false, fields/2))
	}
	d.body, _ = json.Marshal(tree{ // of strings and numbers
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata": tree{
			"name":        d.plural + "." + d.group,
			"labels":      tree{"app.kubernetes.io/part-of": "bench"},
			"annotations": tree{"controller-gen.kubebuilder.io/version": "v0.17.2"},
		},
		"spec": tree{
			"group": d.group, "scope": "Namespaced", "versions": versions,
			"names": tree{
				"plural": d.plural, "singular": strings.ToLower(d.kind), "kind": d.kind, "listKind": d.kind + "List",
				"shortNames": []any{fmt.Sprint("th", i)}, "categories": []any{"things"},
			},
		},
	})
	return d
}

type tree = map[string]any

// writer writes schemas as generators of operators do.
type writer struct{ *rand.Rand }

// version returns a version with that many fields, most of them in the spec, with conditions in
// the status, and with the usual columns and rules.
func (w writer) version(name string, storage bool, fields int) tree {
	column := func(name, kind, path string) tree { return tree{"name": name, "type": kind, "jsonPath": path} }
	return tree{
		"name": name, "served": true, "storage": storage,
		"subresources": tree{"status": tree{}},
		"additionalPrinterColumns": []any{
			column("Mode", "string", ".spec.mode"),
			column("Ready", "string", `.status.conditions[?(@.type=="Ready")].status`),
			column("Age", "date", ".metadata.creationTimestamp"),
		},
		"schema": tree{"openAPIV3Schema": tree{
			"type": "object", "description": w.sentences(2), "required": []any{"spec"},
			"properties": tree{
				"apiVersion": tree{"type": "string", "description": w.sentences(3)},
				"kind":       tree{"type": "string", "description": w.sentences(3)},
				"metadata":   tree{"type": "object"},
				"spec":       w.spec(fields * 4 / 5),
				"status":     w.status(fields / 5),
			},
		}},
	}
}

func (w writer) spec(fields int) tree {
	properties := w.properties(fields, 3)
	number := tree{"type": "integer", "format": "int32", "minimum": 0, "description": w.sentences(1)}
	properties["mode"] = tree{"type": "string", "enum": []any{"Auto", "Manual", "Off"}, "default": "Auto", "description": w.sentences(1)}
	properties["replicas"], properties["minimum"], properties["maximum"] = number, number, number
	return tree{
		"type": "object", "description": w.sentences(1), "properties": properties, "required": []any{"mode"},
		"x-kubernetes-validations": []any{
			tree{"rule": "!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum", "message": "minimum is more than maximum"},
			tree{"rule": "self.mode == oldSelf.mode || self.mode != 'Off'", "message": "what runs is not turned off"},
		},
	}
}

func (w writer) status(fields int) tree {
	properties := w.properties(fields, 2)
	text := func() tree { return tree{"type": "string", "maxLength": 1024, "description": w.sentences(1)} }
	properties["conditions"] = tree{
		"type": "array", "description": w.sentences(1),
		"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"},
		"items": tree{
			"type": "object", "required": []any{"type", "status"}, "description": w.sentences(2),
			"properties": tree{
				"type": text(), "status": text(), "reason": text(), "message": text(),
				"lastTransitionTime": tree{"type": "string", "format": "date-time", "description": w.sentences(1)},
			},
		},
	}
	properties["observedGeneration"] = tree{"type": "integer", "format": "int64", "description": w.sentences(1)}
	return tree{"type": "object", "description": w.sentences(1), "properties": properties}
}

// properties returns that many fields, some of them nested.
func (w writer) properties(fields, depth int) tree {
	properties := tree{}
	for fields > 0 {
		name := fmt.Sprintf("%s%s%d", pick(w, nouns), strings.ToUpper(pick(w, nouns)[:1]), len(properties))
		within := 0
		if depth > 0 && fields > 4 && w.IntN(4) == 0 {
			within = 3 + w.IntN(min(fields-3, 25))
		}
		properties[name] = w.field(within, depth)
		fields -= 1 + within
	}
	return properties
}

// field returns a field with that many fields within.
func (w writer) field(within, depth int) tree {
	f := tree{"description": w.sentences(1)}
	switch {
	case within > 0 && w.IntN(3) == 0:
		f["type"], f["items"] = "array", tree{"type": "object", "properties": w.properties(within, depth-1)}
	case within > 0:
		f["type"], f["properties"] = "object", w.properties(within, depth-1)
	default:
		for key, value := range pick(w, leaves) {
			f[key] = value
		}
	}
	return f
}

var leaves = []tree{
	{"type": "string"}, {"type": "string"}, {"type": "string"},
	{"type": "string", "maxLength": 253, "pattern": `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`},
	{"type": "string", "enum": []any{"Always", "IfNotPresent", "Never"}},
	{"type": "string", "default": "none"},
	{"type": "boolean"}, {"type": "boolean", "default": false},
	{"type": "integer", "format": "int64"}, {"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535},
	{"type": "array", "items": tree{"type": "string"}},
	{"type": "array", "items": tree{"type": "string"}, "x-kubernetes-list-type": "set"},
	{"type": "object", "additionalProperties": tree{"type": "string"}},
	{"x-kubernetes-int-or-string": true, "anyOf": []any{tree{"type": "integer"}, tree{"type": "string"}}},
	{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
}

var (
	nouns = strings.Fields("address bucket cluster config endpoint gateway image key limit name network node policy port profile queue region rule secret selector source subnet target timeout user volume zone")
	words = strings.Fields("the a of this field that which is set to when and cannot be changed after creation defaults value used by controller for each resource must match name with if unset then provider chooses one its status shows what was applied last may take several minutes")
)

func pick[T any](w writer, from []T) T { return from[w.IntN(len(from))] }

func (w writer) sentences(n int) string {
	var b strings.Builder
	for range n {
		for i := range 6 + w.IntN(7) {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(pick(w, words))
		}
		b.WriteString(". ")
	}
	return strings.TrimSuffix(b.String(), " ")
}
