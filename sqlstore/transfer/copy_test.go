package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// A copy holds the source's state and nothing else, above every revision of the source.
func TestCopyBetweenDialects(t *testing.T) {
	for name, dsn := range map[string]string{"postgres": logtest.Postgres(t), "mariadb": logtest.MariaDB(t), "sqlite": "sqlite://:memory:"} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			from, to := openDSN(t, "sqlite://:memory:"), openDSN(t, dsn)
			const n = 600
			for i := range n {
				mustAppend(t, from, changelog.Change{Key: fmt.Sprintf("/registry/core/configmaps/default/c%04d", i), Value: []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"}}`)})
			}
			gone := mustAppend(t, from, changelog.Change{Key: "/registry/core/configmaps/default/gone", Value: []byte(`{"metadata":{}}`)})
			mustAppend(t, from, changelog.Change{Key: "/registry/core/configmaps/default/gone", Expect: gone, Delete: true, Value: []byte(`{"metadata":{}}`)})
			last, err := from.Head(ctx)
			if err != nil {
				t.Fatal(err)
			}
			copied, err := transfer.Copy(ctx, to, from, transfer.CopyOptions{})
			if err != nil || copied.Objects != n {
				t.Fatalf("copied %+v, %v", copied, err)
			}
			head, err := to.Head(ctx)
			if err != nil || head.Floor != head.Revision || head.Revision <= last.Revision+n {
				t.Errorf("target is at %+v, %v; the source was at %d", head, err, last.Revision)
			}
			rows, err := to.State(ctx, "/", "0", head.Revision, 2*n)
			if err != nil || len(rows) != n {
				t.Errorf("target has %d objects, %v", len(rows), err)
			}
			// Nobody has created these objects here, and what was there before is not known.
			if before, err := to.Past(ctx, "/", "0", head.Revision-1, 2*n); !errors.Is(err, changelog.ErrCompacted) {
				t.Errorf("%d objects before the end of the copy, %v", len(before), err)
			}
			if _, err := transfer.Copy(ctx, to, from, transfer.CopyOptions{}); !errors.Is(err, changelog.ErrNotEmpty) {
				t.Errorf("copied twice: %v", err)
			}
			store, err := object.Open(ctx, to, sqlstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if created := store.Get(rows[n-1].Key); store.Brought() != head.Revision-1 || created == nil || created.Revision > store.Brought() {
				t.Errorf("brought up to %d; the head is %d, and an object is %+v", store.Brought(), head.Revision, created)
			}
		})
	}
}

// Keys of an etcd endpoint have revisions and leases that a copy would lose.
func TestCopyOfAnotherKind(t *testing.T) {
	raw, err := dialects.Open(t.Context(), "sqlite://:memory:", dialects.Options{Kind: changelog.KindEtcd})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	objects := openDSN(t, "sqlite://:memory:")
	for _, logs := range [][2]changelog.Log{{raw, objects}, {objects, raw}, {raw, raw}} {
		if n, err := transfer.Copy(t.Context(), logs[0], logs[1], transfer.CopyOptions{}); !errors.Is(err, changelog.ErrKind) || errors.Is(err, changelog.ErrHalfCopied) {
			t.Errorf("from %s to %s: copied %+v, %v", logs[1].Kind(), logs[0].Kind(), n, err)
		}
	}
}

func openDSN(t *testing.T, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(context.Background(), dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func mustAppend(t *testing.T, log changelog.Log, c changelog.Change) int64 {
	t.Helper()
	a, err := log.Append(context.Background(), []changelog.Change{c})
	if err != nil || a.Results[0].Revision == 0 {
		t.Fatalf("append %s: %+v, %v", c.Key, a, err)
	}
	return a.Results[0].Revision
}
