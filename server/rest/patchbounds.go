package rest

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/errors"
)

// Bounds on the work that one patch can cause. The libraries read a value again at each
// level that it is nested in, and look for each item of a merging list among all others,
// so a patch within the limits of its size could keep a processor busy for an hour.
const (
	maxPatchNesting = 64 << 20  // bytes, each as often as the levels that it is within
	maxPatchPairs   = 100 << 20 // pairs of items within one list, of all lists
)

// checkNesting refuses a patch that works on JSON text and is nested too deep for its
// length.
func checkNesting(patch []byte) error {
	if len(patch) < 8<<10 { // too short for that
		return nil
	}
	if nesting(patch) > maxPatchNesting && json.Valid(patch) { // else the library says what is wrong
		return errors.NewRequestEntityTooLargeError("The patch is nested too deep for its length")
	}
	return nil
}

// checkBodyNesting refuses a body that its kind would take too long to read.
func (q *request) checkBodyNesting(body []byte) error {
	if most := q.kind.MaxNesting; most > 0 && q.sub == nil && nesting(body) > most {
		return errors.NewRequestEntityTooLargeError("The body is nested too deep for its length")
	}
	return nil
}

// nesting is the sum over all bytes of the levels of brackets that each is within.
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
		return errors.NewRequestEntityTooLargeError("The lists in the patch are too long")
	}
	return nil
}

// pairs counts how many items there are to compare.
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
