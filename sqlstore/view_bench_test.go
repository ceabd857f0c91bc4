package sqlstore_test

import (
	"testing"

	_ "github.com/mattn/go-sqlite3"

	. "github.com/plinth-io/plinth/sqlstore"
)

func BenchmarkGet(b *testing.B) {
	s := newStore(b, Options{})
	keys := fill(b, s, 10000)
	b.ResetTimer()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if s.Get(keys[i%len(keys)]) == nil {
				b.Error("not found")
			}
		}
	})
}

// BenchmarkCurrent takes a snapshot after each change of 10,000 objects.
func BenchmarkCurrent(b *testing.B) {
	s := newStore(b, Options{})
	fill(b, s, 10000)
	b.ReportAllocs()
	for b.Loop() {
		s.Current(maps)
	}
}
