package logtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestOrigins reads where rows come from, those without an origin among them.
func TestOrigins(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		ctx := t.Context()
		log := openDSN(t, db.dsn)
		s, err := object.Open(ctx, log, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const key = "/registry/core/configmaps/ns/"
		want := map[int64]changelog.Origin{}
		var ids []int64
		for name, o := range map[string]*changelog.Origin{
			"none":  nil,
			"user":  {Author: changelog.Author{User: "jané", Impersonator: "root", Verb: "create", Subresource: "status", Manager: "kubectl"}},
			"audit": {AuditID: "6f1c3f7e-7f5c-4f51-9d4e-0e6f4bb0a3a1"},
			"both":  {Author: changelog.Author{User: "bob", Verb: "update"}, AuditID: "any text"},
		} {
			ctx := ctx
			if o != nil {
				ctx = sqlstore.WithOrigin(ctx, o)
			}
			e, err := s.Commit(ctx, sqlstore.Change{Key: key + name, Value: []byte(`{"metadata":{"name":"x"}}`)})
			if err != nil {
				t.Fatal(err)
			}
			if ids = append(ids, e.Revision); o != nil {
				want[e.Revision] = *o
			}
		}
		got, err := log.Origins(ctx, append(ids, 999))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
		if got, err := log.Origins(ctx, nil); err != nil || len(got) != 0 {
			t.Errorf("of no rows: %v, %v", got, err)
		}
	})
}
