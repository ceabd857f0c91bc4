package sqlstore_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// checkInvariants compares a Store that nobody writes to any more with its log.
func checkInvariants(t testing.TB, s *Store, log changelog.Log) {
	t.Helper()
	ctx := context.Background()
	head, err := log.Head(ctx)
	if err != nil {
		t.Errorf("head: %v", err)
		return
	}
	if r, err := s.Sync(ctx); err != nil || r != head.Revision {
		t.Errorf("sync: %d, %v; the head is %d", r, err, head.Revision)
		return
	}
	checkRows(t, log)
	checkState(t, s, log, head.Revision)
	checkBounds(t, s)
}

// allRows reads all rows, page by page.
func allRows(ctx context.Context, log changelog.Log) (all []changelog.Row, err error) {
	for after, more := int64(0), true; more; {
		rows, err := log.Rows(ctx, after, 1000)
		if err != nil {
			return nil, err
		}
		if all, more = append(all, rows...), changelog.Full(rows, 1000); more {
			after = rows[len(rows)-1].Revision
		}
	}
	return all, nil
}

// allState reads a state, page by page.
func allState(ctx context.Context, log changelog.Log, from, to string, revision int64) (all []changelog.Row, err error) {
	for more := true; more; {
		rows, err := log.State(ctx, from, to, revision, 1000)
		if err != nil {
			return nil, err
		}
		if all, more = append(all, rows...), changelog.Full(rows, 1000); more {
			from = rows[len(rows)-1].Key + "\x00"
		}
	}
	return all, nil
}

// checkRows checks the order of revisions and that each row belongs to an incarnation.
func checkRows(t testing.TB, log changelog.Log) {
	t.Helper()
	rows, err := allRows(context.Background(), log)
	if err != nil {
		t.Errorf("rows: %v", err)
	}
	var last changelog.Row
	created := map[string]int64{}
	for _, r := range rows {
		if r.Revision <= last.Revision || r.At < last.At {
			t.Errorf("row %d at %d after row %d at %d", r.Revision, r.At, last.Revision, last.At)
		}
		if before := created[r.Key]; before != 0 && r.CreateRevision != before {
			t.Errorf("row %d of %s created at %d, its predecessor at %d", r.Revision, r.Key, r.CreateRevision, before)
		}
		created[r.Key] = r.CreateRevision
		if r.Deleted {
			delete(created, r.Key)
		}
		last = r
	}
}

// checkState compares Get, Current and Count with what the log says is in force.
func checkState(t testing.TB, s *Store, log changelog.Log, revision int64) {
	t.Helper()
	ctx := context.Background()
	from, to := changelog.RangeOf("/registry/")
	rows, err := allState(ctx, log, from, to, revision)
	if err != nil {
		t.Errorf("state: %v", err)
	}
	want := map[string]map[string]int64{}
	for _, r := range rows {
		resource := object.ResourceOf(r.Key)
		if want[resource] == nil {
			want[resource] = map[string]int64{}
		}
		want[resource][r.Key] = r.Revision
		e := s.Get(r.Key)
		if e == nil || e.Revision != r.Revision || string(e.Value) != string(object.Splice(r.Value, r.Revision)) {
			t.Errorf("get %s: %+v, the log has revision %d", r.Key, e, r.Revision)
		}
	}
	for resource, n := range s.Stats().Entries {
		view := s.Current(resource)
		from, to := changelog.RangeOf(resource)
		got := revisions(t, view, from, to)
		if diff := cmp.Diff(want[resource], got); diff != "" && n+len(want[resource]) > 0 {
			t.Errorf("current %s, log against state:\n%s", resource, diff)
		}
		if count, err := view.Count(ctx, from, to); err != nil || int(count) != len(got) {
			t.Errorf("count of %s: %d, %v; scanned %d", resource, count, err, len(got))
		}
		delete(want, resource)
	}
	if len(want) > 0 {
		t.Errorf("resources missing from the state: %v", want)
	}
}

func checkBounds(t testing.TB, s *Store) {
	t.Helper()
	v := s.Stats()
	if v.Floor > v.Revision {
		t.Errorf("floor %d above revision %d", v.Floor, v.Revision)
	}
	if limit := s.WindowLimit(); v.WindowBytes > limit || v.WindowBytes < 0 {
		t.Errorf("window of %d bytes, limit %d", v.WindowBytes, limit)
	}
}

// revisions scans view into a map.
func revisions(t testing.TB, view View, from, to string) map[string]int64 {
	t.Helper()
	got, last := map[string]int64{}, ""
	err := view.Scan(context.Background(), from, to, func(e *Entry) bool {
		if e.Key <= last || e.Key < from || e.Key >= to {
			t.Errorf("scan of [%s, %s): %s after %s", from, to, e.Key, last)
		}
		if e.Revision > view.Revision() {
			t.Errorf("view of %d has %s at %d", view.Revision(), e.Key, e.Revision)
		}
		got[e.Key], last = e.Revision, e.Key
		return true
	})
	if err != nil {
		t.Errorf("scan: %v", err)
	}
	return got
}
