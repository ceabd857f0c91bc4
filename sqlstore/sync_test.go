package sqlstore_test

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

// TestReadYourWritesElsewhere checks that whatever one replica acknowledged is seen on
// another after Sync, however fast one follows the other.
func TestReadYourWritesElsewhere(t *testing.T) {
	a, b, _, _ := newReplicas(t, false)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			stores := []*Store{a, b}
			for j := range 60 {
				key := fmt.Sprintf("%sns/%d-%d", maps, i, j)
				create(t, stores[j%2], key)
				if _, err := stores[1-j%2].Sync(t.Context()); err != nil {
					t.Error(err)
				}
				if stores[1-j%2].Get(key) == nil {
					t.Errorf("%s is not on the other replica after Sync", key)
				}
			}
		})
	}
	wg.Wait()
}
