package custom

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCoercedObjects compares upstream's passes with the short cut for coerced and complete
// objects.
func TestCoercedObjects(t *testing.T) {
	crd, _ := puzzled(t)
	short, err := newSchemas(crd)
	if err != nil {
		t.Fatal(err)
	}
	long := short
	long.outlines = nil
	m, coerced := maker{rand.New(rand.NewPCG(1, 1))}, 0
	for i := range puzzles {
		u := m.puzzle()
		how := coercion{stored: i%2 == 0, report: i%3 == 0}
		if short.isCoerced(u.DeepCopy(), "Puzzle", "example.com/v1", how) {
			coerced++
		} else if !short.outlines["v1"].fits(u.Object) {
			continue // the passes are made, and not even they make the same of it each time
		}
		a, b := u.DeepCopy(), u.DeepCopy()
		unknownA, errA := short.coerce(a, how)
		unknownB, errB := long.coerce(b, how)
		if errA == nil && errB == nil {
			short.fill(a)
			long.fill(b)
		}
		if diff := cmp.Diff([]any{b.Object, len(unknownB), errB == nil}, []any{a.Object, len(unknownA), errA == nil}); diff != "" {
			t.Fatalf("%v, %+v: -passes +short cut\n%s", u.Object, how, diff)
		}
	}
	if coerced < puzzles/10 {
		t.Errorf("only %d of %d objects were coerced", coerced, puzzles)
	}
}
