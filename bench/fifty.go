package bench

import (
	"encoding/json"
	"fmt"
	"strings"
)

// fiftyFields is a definition with fifty fields and three rules, as an operator's main
// resource may have.
func fiftyFields() []byte {
	properties := tree{
		"minimum": tree{"type": "integer", "minimum": 0, "maximum": 1000},
		"maximum": tree{"type": "integer", "minimum": 0, "maximum": 1000},
		"mode":    tree{"type": "string", "enum": []any{"Auto", "Manual"}, "default": "Auto"},
		"paused":  tree{"type": "boolean", "default": false},
		"note":    tree{"type": "string", "maxLength": 4096},
		"hosts":   tree{"type": "array", "maxItems": 20, "x-kubernetes-list-type": "set", "items": tree{"type": "string", "maxLength": 253}},
	}
	for i := len(properties); i < 50; i++ {
		properties[fmt.Sprintf("field%02d", i)] = tree{"type": "string", "maxLength": 100}
	}
	body, _ := json.Marshal(tree{ // of strings and numbers
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   tree{"name": "fifties.fifty.bench.example.com"},
		"spec": tree{
			"group": "fifty.bench.example.com", "scope": "Namespaced",
			"names": tree{"plural": "fifties", "kind": "Fifty"},
			"versions": []any{tree{
				"name": "v1", "served": true, "storage": true, "subresources": tree{"status": tree{}},
				"schema": tree{"openAPIV3Schema": tree{"type": "object", "properties": tree{
					"spec": tree{
						"type": "object", "properties": properties, "required": []any{"minimum", "maximum"},
						"x-kubernetes-validations": []any{
							tree{"rule": "self.minimum <= self.maximum", "message": "minimum is more than maximum"},
							tree{"rule": "self.mode != 'Manual' || self.paused", "message": "what is manual is paused"},
							tree{"rule": "self.hosts.all(h, h.endsWith('.example.com'))", "message": "hosts are within example.com"},
						},
					},
					"status": tree{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
			}},
		},
	})
	return body
}

// fiftyValues returns the values of the fields that are plain strings.
func fiftyValues() string {
	var b strings.Builder
	for i := 6; i < 50; i++ {
		fmt.Fprintf(&b, `,"field%02d":"the value of %02d"`, i, i)
	}
	return b.String()
}

// fiftyObject and fiftyConfigMap return objects of the same length and with the same fields, as
// far as a ConfigMap can have them.
func fiftyObject(name string) []byte {
	return fiftyPadded(fmt.Sprintf(`{"kind":"Fifty","apiVersion":"fifty.bench.example.com/v1","metadata":{"name":%q,"namespace":"bench"},`+
		`"spec":{"minimum":1,"maximum":100,"mode":"Auto","paused":false,"hosts":["a.example.com","b.example.com"]%s`, name, fiftyValues()))
}

func fiftyConfigMap(name string) []byte {
	return fiftyPadded(fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"bench"},`+
		`"data":{"minimum":"1","maximum":"100","mode":"Auto","paused":"false","hosts":"a.example.com b.example.com"%s`, name, fiftyValues()))
}

// fiftySize is the number of bytes of each object as it is sent.
const fiftySize = 2048

// fiftyPadded completes an object with a field that fills it up to fiftySize.
func fiftyPadded(open string) []byte {
	open += `,"note":"`
	const end = `"}}`
	return []byte(open + strings.Repeat("x", fiftySize-len(open)-len(end)) + end)
}
