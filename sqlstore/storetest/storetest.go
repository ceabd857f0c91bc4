// Package storetest opens and fills stores for tests of what is built on package sqlstore.
package storetest

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Memory is the DSN of a database that no other store shares.
const Memory = "sqlite://:memory:"

// Open opens the database that dsn names. It is closed at the end of the test, or before by
// the test itself.
func Open(t testing.TB, dsn string, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := object.Open(t.Context(), log, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return store
}

// Put writes an object over the one that is there, if any.
func Put(ctx context.Context, store *sqlstore.Store, key, value string) (*sqlstore.Entry, error) {
	c := sqlstore.Change{Key: key, Value: []byte(value)}
	if e := store.Get(key); e != nil {
		c.Expect = e.Revision
	}
	return store.Commit(ctx, c)
}

// PutMany calls put with 0 to n-1 from many goroutines, so that transactions are shared.
func PutMany(t testing.TB, n int, put func(i int) (*sqlstore.Entry, error)) {
	t.Helper()
	var writers errgroup.Group
	writers.SetLimit(200)
	for i := range n {
		writers.Go(func() error { _, err := put(i); return err })
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
}
