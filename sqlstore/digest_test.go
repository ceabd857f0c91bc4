package sqlstore_test

import (
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestDigest compares memory with the database after creates and updates, and expects another digest
// after each change.
func TestDigest(t *testing.T) {
	s := newStore(t, Options{})
	seen := map[string]int64{}
	for i := range 5 {
		create(t, s, fmt.Sprintf("%sns/%d", maps, i))
		own := s.Digest()
		if before, is := seen[own.Text()]; is {
			t.Errorf("revision %d has the digest of %d", own.Revision, before)
		}
		seen[own.Text()] = own.Revision
		err := s.Source().Freeze(t.Context(), func(z Frozen) error {
			stored, err := object.Digest(t.Context(), z, nil)
			if stored != own || own.Objects != int64(i+1) {
				t.Errorf("memory has %+v, the database %+v", own, stored)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
