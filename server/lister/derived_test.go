package lister

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// names derives the names of the objects, and counts how often it begins anew.
type names struct {
	*Derived
	known  map[string]bool
	resets int
}

func deriveNames(store *sqlstore.Store) *names {
	n := &names{}
	n.Derived = NewDerived(store, followed, func() {
		n.known = map[string]bool{}
		n.resets++
	}, func(ev *sqlstore.Event) {
		name := strings.TrimPrefix(ev.Entry.Key, followed)
		if ev.Type == sqlstore.Delete {
			delete(n.known, name)
			return
		}
		n.known[name] = true
	})
	return n
}

func (n *names) read() []string {
	n.RLock()
	defer n.RUnlock()
	return slices.Sorted(maps.Keys(n.known))
}

// A reader sees every change that was acknowledged before it reads, from the changes alone.
func TestDerived(t *testing.T) {
	store := openStore(t, sqlstore.Options{})
	n := deriveNames(store)
	if got := n.read(); len(got) != 0 {
		t.Errorf("in an empty store: %v", got)
	}
	steps := []struct {
		name   string
		remove bool
		want   []string
	}{
		{"a", false, []string{"default/a"}},
		{"b", false, []string{"default/a", "default/b"}},
		{"a", true, []string{"default/b"}},
		{"b", false, []string{"default/b"}},
	}
	for _, s := range steps {
		write(t, store, s.name, s.remove)
		if diff := cmp.Diff(s.want, n.read()); diff != "" {
			t.Errorf("after %v: %s", s, diff)
		}
	}
	if n.resets != 1 {
		t.Errorf("it began anew %d times", n.resets)
	}
}

// A reader that comes after the window has moved on begins anew.
func TestDerivedBeginsAnew(t *testing.T) {
	store := openStore(t, sqlstore.Options{WindowBytes: 2000})
	n := deriveNames(store)
	write(t, store, "gone", false)
	n.read()
	write(t, store, "gone", true)
	want := []string{}
	for i := range 50 {
		write(t, store, fmt.Sprintf("x%02d", i), false)
		want = append(want, fmt.Sprintf("default/x%02d", i))
	}
	if diff := cmp.Diff(want, n.read()); diff != "" {
		t.Error(diff)
	}
	if n.resets < 2 {
		t.Error("it did not begin anew: the window is not too small for this test")
	}
}

// Readers and writers at once: each writer finds what it wrote.
func TestDerivedConcurrently(t *testing.T) {
	store := openStore(t, sqlstore.Options{WindowBytes: 20000})
	n := deriveNames(store)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("w%d-%d", w, i)
				write(t, store, name, false)
				if !slices.Contains(n.read(), "default/"+name) {
					t.Errorf("%s is not there", name)
				}
				write(t, store, name, true)
				if slices.Contains(n.read(), "default/"+name) {
					t.Errorf("%s is still there", name)
				}
			}
		})
	}
	all.Wait()
}

// Objects that could not be read at first are taken in when the keys are back. Until then, nothing
// else is read again because of them.
func TestDerivedReadsAgain(t *testing.T) {
	key := &seal{}
	key.open.Store(true)
	file := "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	open := func() *sqlstore.Store { return storetest.Open(t, file, sqlstore.Options{Transformer: key}) }
	store := open()
	write(t, store, "a", false)
	write(t, store, "gone", false)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	key.open.Store(false)
	store = open()
	write(t, store, "b", false) // this process knows what it writes
	n := deriveNames(store)
	for range 10 {
		if diff := cmp.Diff([]string{"default/b"}, n.read()); diff != "" {
			t.Errorf("without the key: %s", diff)
		}
		n.due()
	}
	write(t, store, "gone", true)
	key.open.Store(true)
	for begun := time.Now(); len(n.read()) != 2; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatal("the object is not there")
		}
		n.due()
	}
	if diff := cmp.Diff([]string{"default/a", "default/b"}, n.read()); diff != "" {
		t.Error(diff)
	}
	if n.due(); n.resets != 1 {
		t.Errorf("it began anew %d times", n.resets)
	}
	if n.read(); n.again.Load() != 0 || len(n.leftOut) != 0 {
		t.Errorf("it looks for %v for ever", n.leftOut)
	}
}

// due makes it time to read again what is left out, if anything is.
func (n *names) due() {
	if n.again.Load() != 0 {
		n.again.Store(1)
	}
}

// A change that cannot be read is left out until the object is changed again or deleted.
func TestDerivedNotes(t *testing.T) {
	key := &seal{}
	file := "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	store := storetest.Open(t, file, sqlstore.Options{Transformer: key})
	write(t, store, "a", false)
	readable := store.Get(followed + "default/a")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	unreadable := storetest.Open(t, file, sqlstore.Options{Transformer: key}).Get(followed + "default/a")
	n := deriveNames(openStore(t, sqlstore.Options{}))
	for _, tt := range []struct {
		name string
		ev   sqlstore.Event
		out  bool
	}{
		{"unreadable", sqlstore.Event{Type: sqlstore.Put, Entry: unreadable}, true},
		{"readable", sqlstore.Event{Type: sqlstore.Put, Entry: readable}, false},
		{"unreadable again", sqlstore.Event{Type: sqlstore.Put, Entry: unreadable}, true},
		{"deleted", sqlstore.Event{Type: sqlstore.Delete, Entry: unreadable}, false},
	} {
		n.note(&tt.ev)
		if out := n.leftOut[readable.Key]; out != tt.out || out && n.again.Load() == 0 {
			t.Errorf("%s: left out %v, want %v; tried again at %d", tt.name, out, tt.out, n.again.Load())
		}
	}
}
