package storageversion

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

const maps = "/registry/core/configmaps/"

// Pages are small, whatever objects there are, and together have each that may be out of date once, in order.
func TestPages(t *testing.T) {
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	put := func(i, size int) (*sqlstore.Entry, error) {
		return storetest.Put(t.Context(), store, fmt.Sprintf("%sn/%04d", maps, i),
			fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%04d","namespace":"n"},"data":{"a":"%s"}}`, i, strings.Repeat("x", size)))
	}
	storetest.PutMany(t, 700, func(i int) (*sqlstore.Entry, error) { return put(i, map[bool]int{true: 1 << 20}[i < 10]) })
	g := &migration{Migrator: &Migrator{config: Config{Store: store}}, prefix: maps, upTo: store.Revision()}
	storetest.PutMany(t, 50, func(i int) (*sqlstore.Entry, error) { return put(650+i, 1) }) // written since
	if err := g.count(t.Context()); err != nil || g.total != 700 || g.left != 650 {
		t.Fatalf("%d objects, of which %d may be out of date: %v", g.total, g.left, err)
	}
	found, last := 0, ""
	for next := maps; next != ""; {
		page, from, err := g.page(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, e := range page {
			if e.Key <= last || e.Revision > g.upTo {
				t.Errorf("%s at %d follows %s", e.Key, e.Revision, last)
			}
			found, last, size = found+1, e.Key, size+len(e.Value)
		}
		if len(page) > pageObjects || size > pageBytes+1<<20+1<<10 {
			t.Errorf("a page has %d objects of %d bytes", len(page), size)
		}
		next = from
	}
	if found != 650 {
		t.Errorf("%d objects on all pages", found)
	}
}

// A migration rests as long as it has worked, after a write for a moment at least, and ends at once when it is to.
func TestRest(t *testing.T) {
	for _, row := range []struct{ worked, least time.Duration }{{50 * time.Millisecond, leastRest}, {0, leastRest}} {
		g := &migration{begun: time.Now().Add(-row.worked)}
		begun := time.Now()
		if err := g.rest(t.Context(), row.least); err != nil {
			t.Fatal(err)
		}
		if rested := time.Since(begun); rested < max(row.worked, row.least) {
			t.Errorf("after %v of work it has rested %v", row.worked, rested)
		}
		if g.begun.Before(begun) {
			t.Error("the work before the rest counts again after it")
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	g := &migration{begun: time.Now().Add(-time.Hour)}
	if err := g.rest(ended, 0); err == nil {
		t.Error("a rest goes on when the migration is to end")
	}
}

// A migration of a custom resource waits until the server stores in the version that the definition says.
func TestUpToDate(t *testing.T) {
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	g := &migration{Migrator: &Migrator{config: Config{Store: store}}}
	served := &kind.Kind{Group: "example.com", Resource: "widgets", Stored: kind.Stored{Group: "example.com", Resource: "widgets", Version: "v1"}, Custom: &kind.CustomResource{}}
	for _, row := range []struct {
		stored string // by the definition; empty: there is none
		want   bool
	}{{"", false}, {"v2", false}, {"v1", true}} {
		if row.stored != "" {
			definition := fmt.Sprintf(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"widgets.example.com"},"spec":{"versions":[{"name":"v1","storage":%t},{"name":"v2","storage":%t}]}}`,
				row.stored == "v1", row.stored == "v2")
			if _, err := storetest.Put(t.Context(), store, definitionsPrefix+"widgets.example.com", definition); err != nil {
				t.Fatal(err)
			}
		}
		if got := g.upToDate(served); got != row.want {
			t.Errorf("the definition stores %q: %t", row.stored, got)
		}
	}
}
