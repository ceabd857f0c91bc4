package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

// manyObjects is how many the status of the benchmark counts.
const manyObjects = 10_000

// BenchmarkStatus gathers the status of a server with many objects.
func BenchmarkStatus(b *testing.B) {
	s := benchmarked(b)
	b.ReportAllocs()
	for b.Loop() {
		all := s.condition.statusSource().Gather()
		if all.Database.Objects < manyObjects {
			b.Fatalf("%d objects", all.Database.Objects)
		}
		if _, err := json.Marshal(all); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFacts is what alarms cost every five seconds.
func BenchmarkFacts(b *testing.B) {
	s := benchmarked(b)
	b.ReportAllocs()
	for b.Loop() {
		s.condition.facts()
	}
}

func benchmarked(b *testing.B) *Server {
	b.Helper()
	s := New(Config{DSN: "sqlite://:memory:", Controllers: []string{}})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	value := strings.Repeat("x", 1000)
	done := make(chan error)
	const writers = 64
	for w := range writers {
		go func() {
			var err error
			for i := w; i < manyObjects && err == nil; i += writers {
				name := fmt.Sprintf("o%05d", i)
				_, err = s.store.Commit(b.Context(), sqlstore.Change{
					Key:   "/registry/core/configmaps/default/" + name,
					Value: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"data":{"v":%q}}`, name, value),
				})
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	return s
}
