package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestDigest compares memory with the database after creates and updates, and expects another digest
// after each change.
func TestDigest(t *testing.T) {
	s := newStore(t, Options{})
	seen := map[string]int64{}
	for i := range 5 {
		create(t, s, fmt.Sprintf("%sns/%d", maps, i))
		own := digest(t, s)
		if before, is := seen[own.Text()]; is {
			t.Errorf("revision %d has the digest of %d", own.Revision, before)
		}
		seen[own.Text()] = own.Revision
		err := s.Source().Freeze(t.Context(), func(z changelog.Frozen) error {
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

func digest(t *testing.T, s *Store) Digest {
	t.Helper()
	d, err := s.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDigestAt goes back through creates, updates and deletes, and expects the digests that memory had.
func TestDigestAt(t *testing.T) {
	s := newStore(t, Options{})
	seen := []Digest{digest(t, s)}
	for i := range 30 {
		key := fmt.Sprintf("%sns/%d", maps, i%7)
		c := Change{Key: key, Value: []byte(`{"metadata":{}}`)}
		if e := s.Get(key); e != nil {
			c.Expect, c.Delete = e.Revision, i%3 == 0
		}
		commit(t, s, c)
		seen = append(seen, digest(t, s))
	}
	for _, want := range seen {
		if got, err := s.DigestAt(t.Context(), want.Revision); got != want || err != nil {
			t.Errorf("at %d: %+v, %v; it was %+v", want.Revision, got, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.DigestAt(ctx, s.Revision()+1); err == nil {
		t.Error("the digest of a revision that is not there")
	}
	small := newStore(t, Options{WindowBytes: 1})
	create(t, small, maps+"ns/a")
	at := small.Revision()
	create(t, small, maps+"ns/b")
	if _, err := small.DigestAt(t.Context(), at); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("beyond the window: %v", err)
	}
}
