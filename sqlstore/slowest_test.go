package sqlstore_test

import (
	"fmt"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

// The slowest watcher is the one that has not taken a change of what it watches for the longest time.
func TestSlowest(t *testing.T) {
	for _, window := range []int{1, 1 << 20} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			s := newStore(t, Options{WindowBytes: window})
			watch := func(prefix string) *Watcher {
				w, err := s.Watch(maps, prefix, s.Revision())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(w.Close)
				return w
			}
			all, one, idle := watch(maps), watch(maps+"one/"), watch(maps+"idle/")
			if found := s.Slowest(); found.For != 0 {
				t.Errorf("nothing has changed: %+v", found)
			}
			create(t, s, maps+"one/a")
			create(t, s, maps+"two/a")
			last := create(t, s, maps+"two/b")
			poll(t, all, last.Revision)
			if found := s.Slowest(); found.For <= 0 || found.Prefix != maps+"one/" || found.Behind != 1 || found.FromLog != (window == 1) {
				t.Errorf("one watcher is behind: %+v", found)
			}
			poll(t, one, last.Revision)
			if found := s.Slowest(); found.For != 0 {
				t.Errorf("all have delivered: %+v", found)
			}
			create(t, s, maps+"idle/a")
			idle.Close()
			poll(t, all, s.Revision())
			if found := s.Slowest(); found.For != 0 {
				t.Errorf("a closed watcher is behind: %+v", found)
			}
		})
	}
}
