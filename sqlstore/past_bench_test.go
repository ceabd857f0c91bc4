package sqlstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// BenchmarkKept compares a server that retentions old versions with one that retentions none: what serves the
// present must not become slower by the past. There are 1,000 objects of 1 KiB. PLINTH_BENCH_KEPT asks
// for another number of old versions, such as a million. The two take turns, and the medians of what
// each turn took are reported, so that other load on the machine matters less.
func BenchmarkKept(b *testing.B) {
	kept, err := strconv.Atoi(os.Getenv("PLINTH_BENCH_KEPT"))
	if err != nil {
		kept = 20_000
	}
	var none, with keptDB
	none.make(b, "", 0)
	with.make(b, "*=90d", kept)
	b.Run("start", func(b *testing.B) {
		inTurns(b, &none, &with, func(d *keptDB, _ int) {
			if err := d.open(b).Close(); err != nil {
				b.Fatal(err)
			}
		})
	})
	for _, d := range []*keptDB{&none, &with} {
		before := heap()
		d.store = d.open(b)
		defer d.store.Close()
		d.heap = heap() - before
	}
	b.Run("memory", func(b *testing.B) {
		for b.Loop() { // the figures are there
		}
		report(b, "heap-bytes", float64(none.heap), float64(with.heap))
	})
	b.Run("get", func(b *testing.B) {
		inTurns(b, &none, &with, func(d *keptDB, _ int) {
			for i := range keptObjects {
				if d.store.Get(keptKey(i)) == nil {
					b.Fatal("an object is missing")
				}
			}
		})
	})
	b.Run("list", func(b *testing.B) {
		from, to := changelog.RangeOf(maps)
		inTurns(b, &none, &with, func(d *keptDB, _ int) {
			n := 0
			err := d.store.Current(maps).Scan(context.Background(), from, to, func(*Entry) bool { n++; return true })
			if err != nil || n != keptObjects {
				b.Fatal(n, err)
			}
		})
	})
	b.Run("create", func(b *testing.B) {
		name := time.Now().UnixNano()
		inTurns(b, &none, &with, func(d *keptDB, i int) {
			key := fmt.Sprintf("%sns/%d-%d", pods, name, i)
			commit(b, d.store, Change{Key: key, Value: kilobyte(key)})
		})
	})
	b.Run("compact", func(b *testing.B) { // of 100 changes
		inTurns(b, &none, &with, func(d *keptDB, i int) {
			for i := range 100 {
				e := d.store.Get(keptKey(i))
				commit(b, d.store, Change{Key: e.Key, Expect: e.Revision, Value: kilobyte(e.Key)})
			}
			if err := d.store.CompactTo(context.Background(), d.store.Revision()); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// keptDB is a database with old versions, and a store on it.
type keptDB struct {
	dsn, rules string
	store      *Store
	heap       int64
}

func (d *keptDB) make(b *testing.B, rules string, kept int) {
	d.dsn, d.rules = "sqlite://"+filepath.Join(b.TempDir(), "p.db"), rules
	fillKept(b, d.dsn+"?durability=off", kept)
}

func (d *keptDB) open(b *testing.B) *Store {
	s, err := object.Open(context.Background(), openLog(b, d.dsn), Options{Retention: keeping(b, d.rules)})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// inTurns runs f on both databases in turns.
func inTurns(b *testing.B, none, with *keptDB, f func(d *keptDB, i int)) {
	took := map[*keptDB][]float64{}
	for i := 0; b.Loop(); i++ {
		for _, d := range []*keptDB{none, with} {
			begin := time.Now()
			f(d, i)
			took[d] = append(took[d], float64(time.Since(begin)))
		}
	}
	median := func(d *keptDB) float64 {
		slices.Sort(took[d])
		return took[d][len(took[d])/2]
	}
	report(b, "ns", median(none), median(with))
}

func report(b *testing.B, unit string, none, with float64) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(none, "none-"+unit)
	b.ReportMetric(with, "kept-"+unit)
	b.ReportMetric(100*(with-none)/none, "%more")
}

const keptObjects = 1000

func keptKey(i int) string { return fmt.Sprintf("%sns/%04d", maps, i) }

// fillKept makes a database with so many old versions.
func fillKept(b *testing.B, dsn string, kept int) {
	log := openLog(b, dsn)
	defer log.Close()
	ctx, retention := context.Background(), keeping(b, "*=90d")
	revisions := make([]int64, keptObjects)
	for done := 0; done < kept+keptObjects; {
		var batch []changelog.Change
		for i := 0; i < 500; i++ {
			o := (done + i) % keptObjects
			batch = append(batch, changelog.Change{Key: keptKey(o), Expect: revisions[o], Value: kilobyte(keptKey(o))})
		}
		a, err := log.Append(ctx, batch)
		if err != nil {
			b.Fatal(err)
		}
		for i, r := range a.Results {
			revisions[(done+i)%keptObjects] = r.Revision
		}
		if done += len(batch); kept > 0 {
			if _, err := log.Compact(ctx, a.Results[0].Revision, 1000, retention); err != nil {
				b.Fatal(err)
			}
		}
	}
	for kept > 0 {
		c, err := log.Compact(ctx, revisions[keptObjects-1], 1000, retention)
		if err != nil {
			b.Fatal(err)
		}
		if c.Kept == 0 {
			break
		}
	}
	if size, err := log.Size(ctx); err != nil || size.Past < int64(kept)-keptObjects {
		b.Fatalf("%+v, %v", size, err)
	}
}
