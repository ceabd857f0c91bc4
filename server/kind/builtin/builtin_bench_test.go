package builtin_test

import (
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// BenchmarkKinds measures what the Kinds cost at a start: bare, and with upstream's stores.
func BenchmarkKinds(b *testing.B) {
	log, err := dialects.Open(b.Context(), "sqlite://:memory:", dialects.Options{})
	if err != nil {
		b.Fatal(err)
	}
	store, err := object.Open(b.Context(), log, sqlstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for name, o := range map[string]builtin.Options{"bare": {}, "stores": {Store: store, Client: &clientrest.Config{Host: "http://127.0.0.1"}}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				builtin.Kinds(o)
			}
		})
	}
}
