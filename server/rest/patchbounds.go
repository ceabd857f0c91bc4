package rest

import (
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Bounds on the work that one patch can cause. The libraries read a value again at each level of
// nesting, and compare each item of a merged list with all others. Without bounds a patch of the
// allowed size could keep a processor busy for an hour.
const (
	maxPatchNesting = 64 << 20  // bytes, each counted once for each level of nesting
	maxPatchPairs   = 100 << 20 // pairs of items within one list, of all lists
)

// shortBody is the length below which no nesting causes much work, in bytes.
const shortBody = 8 << 10

// checkNesting refuses a JSON patch or merge patch that is nested too deep for its length.
func checkNesting(patch []byte) error {
	if len(patch) < shortBody {
		return nil
	}
	if nesting(patch) > maxPatchNesting && json.Valid(patch) { // the library says what is wrong with invalid JSON
		return apierrors.NewRequestEntityTooLargeError("The patch is nested too deep for its length")
	}
	return nil
}

// checkBodyNesting refuses a body whose nesting would make decoding take too long.
func (t *target) checkBodyNesting(body []byte) error {
	if most := t.kind.MaxNesting; most > 0 && nesting(body) > most {
		return apierrors.NewRequestEntityTooLargeError("The body is nested too deep for its length")
	}
	return nil
}

// checkCBOR refuses a body in CBOR that would take too long to decode, see checkBodyNesting, or too much memory. A
// value takes at least one byte in CBOR and three in JSON, with its comma, so a body in CBOR may not have more values
// than fit in a body in JSON.
func (q *request) checkCBOR(body []byte) error {
	most, depth := q.api.o.MaxBodyBytes/3, q.kind.MaxNesting
	if int64(len(body)) <= most && (depth == 0 || len(body) < shortBody) {
		return nil
	}
	var object any
	if err := direct.Unmarshal(body, &object); err != nil {
		return nil // the kind's decoder says what is wrong
	}
	var m measure
	switch m.add(object, 0); {
	case int64(m.values) > most:
		return apierrors.NewRequestEntityTooLargeError("The body has too many values")
	case depth > 0 && m.nesting > depth:
		return apierrors.NewRequestEntityTooLargeError("The body is nested too deep for its length")
	}
	return nil
}

// measure has the number of values in a value, including itself, and about the nesting of its JSON.
type measure struct{ values, nesting int }

func (m *measure) add(v any, depth int) {
	m.values++
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			m.nesting += (len(name) + len(`"":,`)) * (depth + 1)
			m.add(field, depth+1)
		}
	case []any:
		for _, item := range v {
			m.add(item, depth+1)
		}
	case string:
		m.nesting += len(v) * depth
	}
	m.nesting += len(`{}`) * depth
}

// nesting is the sum of the levels of nesting of all bytes.
func nesting(text []byte) int {
	sum, depth, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
			sum += depth
		case !quoted && (c == '{' || c == '['):
			depth++
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
		sum += depth
	}
	return sum
}

// checkLists refuses a strategic merge patch with too long lists.
func checkLists(patch map[string]any) error {
	if pairs(patch) > maxPatchPairs {
		return apierrors.NewRequestEntityTooLargeError("The lists in the patch are too long")
	}
	return nil
}

// pairs counts the pairs of items that the merge of all lists compares.
func pairs(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			n += pairs(field)
		}
	case []any:
		n = len(v) * len(v)
		for _, item := range v {
			n += pairs(item)
		}
	}
	return n
}
