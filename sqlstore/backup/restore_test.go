package backup_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	. "github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

func key(i int) string { return fmt.Sprintf("/registry/core/configmaps/default/c%04d", i) }

// fill makes a log with a history: n objects, some changed, deleted, and made again.
func fill(t testing.TB, log changelog.Log, n int) {
	t.Helper()
	numbers, err := log.AddAuthors(t.Context(), []changelog.Author{{User: "unused"}, {User: "jane", Verb: "create", Manager: "kubectl"}})
	must(t, err)
	at := map[string]int64{}
	write := func(batch ...changelog.Change) {
		for i := range batch {
			batch[i].Expect = at[batch[i].Key]
			batch[i].Value = object(batch[i].Key, 10*len(at)%700)
		}
		a, err := log.Append(t.Context(), batch)
		must(t, err)
		for i, r := range a.Results {
			if r.Revision == 0 {
				t.Fatalf("%s was not written", batch[i].Key)
			}
			if at[batch[i].Key] = r.Revision; batch[i].Delete {
				at[batch[i].Key] = 0
			}
		}
	}
	for i := range n {
		write(changelog.Change{Key: key(i)})
	}
	for i := 0; i < n; i += 3 {
		write(changelog.Change{Key: key(i)})
	}
	for i := 0; i < n; i += 5 {
		write(changelog.Change{Key: key(i), Delete: true})
	}
	for i := 0; i < n; i += 10 {
		write(changelog.Change{Key: key(i)})
	}
	_ = numbers
	keepForever(t, log, int64(n+n/3+n/6))
}

// keepForever compacts a log up to a revision, and keeps all old versions beside it.
func keepForever(t testing.TB, log changelog.Log, through int64) {
	t.Helper()
	c, err := log.Compact(t.Context(), through, 100_000, changelog.NewRetention(changelog.Rule{Resource: "*", For: changelog.KeepForever}))
	if err != nil || c.Floor != through {
		t.Fatalf("compacted %+v, %v", c, err)
	}
}

// oldOf returns what is kept beside the log.
func oldOf(t testing.TB, source changelog.Source) (old []changelog.OldRow, kept map[string]int64) {
	t.Helper()
	must(t, source.Freeze(t.Context(), func(z changelog.Frozen) (err error) {
		if kept, err = z.Kept(t.Context()); err != nil {
			return err
		}
		return z.Old(t.Context(), func(r *changelog.OldRow) error {
			row := *r
			row.Value, row.AuditID = bytes.Clone(r.Value), bytes.Clone(r.AuditID)
			old = append(old, row)
			return nil
		})
	}))
	return old, kept
}

// contentOf returns what is in force, or all rows.
func contentOf(t testing.TB, source changelog.Source, inForce bool) (rows []changelog.Row, head changelog.Head) {
	t.Helper()
	must(t, source.Freeze(t.Context(), func(z changelog.Frozen) (err error) {
		if head, err = z.Head(t.Context()); err != nil {
			return err
		}
		return z.All(t.Context(), inForce, func(r *changelog.Row) error {
			row := *r
			row.Value, row.AuditID = bytes.Clone(r.Value), bytes.Clone(r.AuditID)
			rows = append(rows, row)
			return nil
		})
	}))
	return rows, head
}

// A backup of each dialect is restored into each.
func TestRestore(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		from := openLog(t, dsn)
		fill(t, from, 300)
		for _, to := range logtest.Dialects {
			for _, history := range []bool{false, true} {
				t.Run(fmt.Sprintf("to %s, history %v", to.Name, history), func(t *testing.T) {
					source, err := dialects.Peek(t.Context(), dsn, dialects.Options{})
					must(t, err)
					defer source.Close()
					backAndForth(t, source, to, history)
				})
			}
		}
	})
}

func backAndForth(t *testing.T, source changelog.Source, to logtest.Dialect, history bool) {
	var file bytes.Buffer
	taken, err := Take(t.Context(), source, &file, Options{Program: "v1", History: history})
	must(t, err)
	wanted, head := contentOf(t, source, !history)
	if taken.Size != int64(file.Len()) || taken.Rows != int64(len(wanted)) || taken.Revision != head.Revision {
		t.Errorf("taken %+v of %+v with %d rows", taken, head, len(wanted))
	}
	_, report, err := Verify(t.Context(), bytes.NewReader(file.Bytes()), scrub.Options{Found: func(p scrub.Problem) { t.Error(p) }})
	if err != nil || report.Rows != taken.Rows || report.Bytes != taken.Bytes {
		t.Errorf("verified %+v, %v", report, err)
	}
	target := openLog(t, to.Fresh(t))
	restored, err := Restore(t.Context(), target, bytes.NewReader(file.Bytes()), nil)
	must(t, err)
	got, now := contentOf(t, target, !history)
	if now.Floor != head.Revision+Above || now.Revision != now.Floor || restored.Floor != now.Floor {
		t.Errorf("the target is at %+v; the source was at %+v", now, head)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("(-source +target)\n%s", diff)
	}
	old, kept := oldOf(t, source)
	gotOld, gotKept := oldOf(t, target)
	if len(old) < 50 || len(kept) == 0 {
		t.Errorf("the source keeps %d old versions, %v", len(old), kept)
	}
	if !history {
		old, kept = nil, map[string]int64{}
	}
	if diff := cmp.Diff(old, gotOld); diff != "" {
		t.Errorf("old versions (-source +target)\n%s", diff)
	}
	if diff := cmp.Diff(kept, gotKept); diff != "" {
		t.Errorf("what is kept (-source +target)\n%s", diff)
	}
	if history {
		samePast(t, source, target, head)
	}
	data := int64(0)
	for _, r := range old {
		data += int64(len(r.Key) + len(r.Value))
	}
	if c, err := target.Bound(t.Context(), math.MaxInt64, 1); err != nil || c.Past != data {
		t.Errorf("old versions of %d bytes are counted as %d, %v", data, c.Past, err)
	}
	if of, err := changelog.CopiedFrom(t.Context(), target, source.ClusterID()); err != nil || !of {
		t.Errorf("the target does not know where its objects come from: %v", err)
	}
	a, err := target.Append(t.Context(), []changelog.Change{{Key: key(1), Expect: 2, Value: object(key(1), 1)}})
	if err != nil || a.Results[0].Revision <= now.Floor {
		t.Errorf("a write after it: %+v, %v", a, err)
	}
	if _, err := target.Compact(t.Context(), now.Floor, 10_000, nil); err != nil {
		t.Error(err)
	}
	report, err = scrub.Log(t.Context(), target, scrub.Options{Found: func(p scrub.Problem) { t.Error(p) }})
	if err != nil || report.Problems > 0 {
		t.Errorf("the target: %+v, %v", report, err)
	}
	if _, err := Restore(t.Context(), target, bytes.NewReader(file.Bytes()), nil); !errors.Is(err, changelog.ErrNotEmpty) {
		t.Errorf("restored twice: %v", err)
	}
}

// samePast compares what is known of the past.
func samePast(t *testing.T, source changelog.Source, target changelog.Log, head changelog.Head) {
	t.Helper()
	now, _ := contentOf(t, source, true)
	restored, err := target.Past(t.Context(), "/registry/", "/registry0", head.Revision, 10_000)
	if err != nil || len(restored) != len(now) {
		t.Errorf("as it was at revision %d: %d objects, %v; want %d", head.Revision, len(restored), err, len(now))
	}
	if _, err := target.Past(t.Context(), "/registry/", "/registry0", 1, 10_000); err != nil {
		t.Errorf("as it was at revision 1: %v", err)
	}
}

// A backup that turns out to be bad leaves nothing in the target, which takes a good one then.
func TestRestoreNothing(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		good := random(5, 5000).write(t)
		target := openLog(t, d.Fresh(t))
		bad := bytes.Clone(good)
		bad[len(bad)-1] ^= 1
		for _, file := range [][]byte{bad, good[:len(good)-33], good[:len(good)/2]} {
			if _, err := Restore(t.Context(), target, bytes.NewReader(file), nil); !errors.Is(err, ErrAltered) && !errors.Is(err, ErrCut) {
				t.Errorf("a bad backup: %v", err)
			}
			if rows, head := contentOf(t, target, false); len(rows) > 0 || head.Revision > 0 {
				t.Errorf("%d rows were restored, up to %+v", len(rows), head)
			}
		}
		_, err := Restore(t.Context(), target, bytes.NewReader(good), nil)
		must(t, err)
	})
}
