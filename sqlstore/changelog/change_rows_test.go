package changelog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore/changelog"
)

// Every change of a batch is judged against the newest row of its key alone (rule 2 of the
// package's documentation).
func TestJudge(t *testing.T) {
	absent, alive, dead := Result{}, Result{Found: 3, CreateRevision: 2}, Result{Found: 3, CreateRevision: 2, FoundDeleted: true}
	for _, c := range []struct {
		name   string
		change Change
		newest Result
		want   Result
	}{
		{"a create of an absent key", Change{}, absent, Result{Revision: 10, CreateRevision: 10}},
		{"a create of a key that exists", Change{}, alive, Result{Found: 3}},
		{"a create of a deleted key", Change{}, dead, Result{Revision: 10, CreateRevision: 10}},
		{"an update of an absent key", Change{Expect: 3}, absent, Result{}},
		{"an update of the newest row", Change{Expect: 3}, alive, Result{Revision: 10, CreateRevision: 2}},
		{"an update of an older row", Change{Expect: 2}, alive, Result{Found: 3}},
		{"an update of a deleted key", Change{Expect: 3}, dead, Result{Found: 3, FoundDeleted: true}},
		{"a delete of the newest row", Change{Expect: 3, Delete: true}, alive, Result{Revision: 10, CreateRevision: 2}},
		{"a delete of an older row", Change{Expect: 2, Delete: true}, alive, Result{Found: 3}},
		{"a delete that expects nothing", Change{Delete: true}, absent, Result{}},
		{"a delete of a deleted key", Change{Expect: 3, Delete: true}, dead, Result{Found: 3, FoundDeleted: true}},
	} {
		c.change.Key, c.change.Value = "/registry/a", []byte("v")
		// Neighbours that hold get their revisions whatever becomes of the change between them.
		batch := []Change{c.change, {Key: "/registry/b", Value: []byte("w")}}
		a := Appended{Head: 9, At: 77, Results: []Result{c.newest, {}}}
		rows := a.Judge(batch, nil)
		next, want := int64(10), []Row(nil)
		if c.want.Revision != 0 {
			next, want = 11, []Row{{Revision: 10, Key: "/registry/a", CreateRevision: c.want.CreateRevision, Deleted: c.change.Delete, At: 77, Value: []byte("v")}}
		}
		want = append(want, Row{Revision: next, Key: "/registry/b", CreateRevision: next, At: 77, Value: []byte("w")})
		if d := cmp.Diff([]Result{c.want, {Revision: next, CreateRevision: next}}, a.Results); d != "" {
			t.Errorf("%s: results (-want +got):\n%s", c.name, d)
		}
		if d := cmp.Diff(want, rows); d != "" {
			t.Errorf("%s: rows (-want +got):\n%s", c.name, d)
		}
	}
}
