package sqlstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// TestUndecodable has rows of another process that are no objects, and values that were damaged after they had left memory: both
// become unreadable when they are read, are listed nowhere without an error, and can be deleted.
func TestUndecodable(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		s := storetest.Open(t, dsn, Options{StateBytes: 1, Check: object.Check})
		other := storetest.Open(t, dsn, Options{})
		put := func(name, value string) {
			t.Helper()
			if _, err := storetest.Put(t.Context(), other, maps+"ns/"+name, value); err != nil {
				t.Fatal(err)
			}
		}
		good := func(name string) string {
			return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns"}}`, name)
		}
		put("away", good("away"))
		put("good", good("good"))
		until(t, "the values have left memory", func() bool { _, err := s.Sync(t.Context()); s.EvictNow(); return err == nil && s.Stats().Away == 2 })
		if bad := s.Unreadable(maps); bad != nil || s.Damaged() != 0 {
			t.Errorf("unreadable at first: %v, %d", bad, s.Damaged())
		}
		name, value := "key", `'\x7b626164'::bytea`
		if d.Name == "mariadb" {
			name, value = "`key`", "X'7b626164'"
		}
		logtest.Exec(t, dsn, fmt.Sprintf("UPDATE log SET value = %s WHERE %s = '%sns/away'", value, name, maps))
		put("other", good("good")) // the name is another's
		put("cut", `{"kind":"ConfigMap"`)
		if _, err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		from, to := changelog.RangeOf(maps)
		n := 0
		err := s.Current(maps).Scan(t.Context(), from, to, func(*Entry) bool { n++; return true })
		var bad *UnreadableError
		if !errors.As(err, &bad) || len(bad.Objects) != 3 || n != 1 {
			t.Fatalf("%d objects, %v", n, err)
		}
		known := s.Unreadable(maps + "ns/")
		if known == nil || len(known.Objects) != 3 || s.Damaged() != 3 {
			t.Fatalf("known: %v, %d", known, s.Damaged())
		}
		if err := s.Current(maps).Outline(t.Context(), from, to, func(*Entry) bool { return true }); !errors.As(err, &bad) || len(bad.Objects) != 3 {
			t.Errorf("outline: %v", err)
		}
		for i, name := range []string{"away", "cut", "other"} {
			e := s.Get(maps + "ns/" + name)
			var u *Unreadable
			if !errors.As(e.Unreadable(), &u) || !u.Damaged() || e.Value != nil || known.Objects[i].Key != e.Key {
				t.Errorf("%s: %v, value %q", name, e.Unreadable(), e.Value)
			}
			if _, err := s.Commit(t.Context(), object.Tombstone(e)); err != nil {
				t.Errorf("delete %s: %v", name, err)
			}
		}
		if bad := s.Unreadable(maps); bad != nil || s.Damaged() != 0 {
			t.Errorf("in the end: %v, %d", bad, s.Damaged())
		}
	})
}
