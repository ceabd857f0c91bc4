package cluster

import (
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
)

// BenchmarkEnsurePolicy measures what a start does about roles that are there: it compares them.
func BenchmarkEnsurePolicy(b *testing.B) {
	api := apitest.Open(b)
	c, err := New(Config{Client: api.Config, Store: api.Store})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := c.EnsurePolicy(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
