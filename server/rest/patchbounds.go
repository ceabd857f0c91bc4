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

// checkNesting refuses a JSON patch or merge patch that is nested too deep for its length.
func checkNesting(patch []byte) error {
	if len(patch) < 8<<10 { // too short to cause much work
		return nil
	}
	if nesting(patch) > maxPatchNesting && json.Valid(patch) { // the library says what is wrong with invalid JSON
		return apierrors.NewRequestEntityTooLargeError("The patch is nested too deep for its length")
	}
	return nil
}

// checkBodyNesting refuses a body that its kind would take too long to read.
func (t *target) checkBodyNesting(body []byte) error {
	if most := t.kind.MaxNesting; most > 0 && nesting(body) > most {
		return apierrors.NewRequestEntityTooLargeError("The body is nested too deep for its length")
	}
	return nil
}

// checkValues refuses a body in CBOR that its kind would take too much memory to read: one that has
// more values than a body in JSON can have, where a value with its comma takes three bytes. In CBOR a
// value takes one.
func (q *request) checkValues(body []byte) error {
	most := q.api.o.MaxBodyBytes / 3
	if q.kind.MaxNesting == 0 || int64(len(body)) <= most {
		return nil
	}
	var object any
	if err := direct.Unmarshal(body, &object); err != nil {
		return nil // the kind's decoder says what is wrong
	}
	if int64(values(object)) > most {
		return apierrors.NewRequestEntityTooLargeError("The body has too many values")
	}
	return nil
}

// values counts the values within a value, with the value itself.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			n += values(field)
		}
	case []any:
		for _, item := range v {
			n += values(item)
		}
	}
	return n
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
