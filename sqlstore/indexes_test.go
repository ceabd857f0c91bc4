package sqlstore_test

import (
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestIndexBuilt selects by a label in a namespace. One that has nearly all objects gets an index at once, since nothing
// else is ever scanned; one that has few does not.
func TestIndexBuilt(t *testing.T) {
	for _, test := range []struct {
		few, indexes int // objects of the namespace that is scanned, and indexes after that
	}{{1090, 1}, {300, 0}} {
		t.Run(fmt.Sprint(test.few), func(t *testing.T) {
			s := newStore(t, Options{})
			for i := range 1100 {
				namespace := "scanned"
				if i >= test.few {
					namespace = "other"
				}
				create(t, s, fmt.Sprintf("%s%s/%04d", maps, namespace, i))
			}
			from, to := changelog.RangeOf(maps + "scanned/")
			where := []Predicate{{Attribute: object.Label("a"), Terms: []string{"b"}}}
			if err := s.Current(maps).Select(t.Context(), from, to, where, func(*Entry) bool { return true }); err != nil {
				t.Fatal(err)
			}
			if n := s.Stats().Indexes; n != test.indexes {
				t.Errorf("there are %d indexes", n)
			}
		})
	}
}
