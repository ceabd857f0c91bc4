package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestAppendAndRead(t *testing.T) {
	for name, path := range map[string]string{"file": filepath.Join(t.TempDir(), "new", "a b?#%.db"), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			l := open(t, Options{Path: path})
			ctx := context.Background()
			a, err := l.Append(ctx, []changelog.Change{{Key: "/a", Value: []byte("1")}, {Key: "/b", Expect: 7, Value: []byte("2")}})
			if err != nil {
				t.Fatal(err)
			}
			if a.Results[0].Revision != 1 || a.Results[1].Revision != 0 {
				t.Fatalf("results %+v", a.Results)
			}
			rows, err := l.State(ctx, "/", "0", 1, 10)
			if err != nil || len(rows) != 1 || rows[0].Key != "/a" || string(rows[0].Value) != "1" {
				t.Fatalf("state %+v, %v", rows, err)
			}
			if err := l.Reclaim(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}
