package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Old values are read in parts while an answer is written, so that a page takes no more memory than one part.
// All requests together borrow the memory for their parts from the Store.
const (
	partBytes = 512 << 10 // approximate size of the values; the last one may be larger
	partRows  = 100
	// partCopies is how many copies of a value are in memory until it is sent: those of the driver, of the
	// reader, in its version, and in the answer.
	partCopies = 4
)

// gathered is a page of changes or versions, without data.
type gathered struct {
	*walk
	kind *kind.Kind
	room int // limit in bytes

	bytes   int
	entries []*sqlstore.Entry
	rows    map[int64]*changelog.HistoryRow // by revision, if data is to be added
}

// take is a visit. It always takes the first change.
func (g *gathered) take(v *v1.Version, row *changelog.HistoryRow) (bool, error) {
	e, err := g.kind.Entry(g.form.one(v))
	if err != nil {
		return false, err
	}
	size := len(e.Value) + int(row.Size)
	if g.bytes > 0 && g.bytes+size > g.room {
		return false, nil
	}
	g.bytes += size
	g.entries = append(g.entries, e)
	if g.sizes() {
		if g.rows == nil {
			g.rows = map[int64]*changelog.HistoryRow{}
		}
		r := *row // a copy, so that the page of rows can be freed
		g.rows[row.Revision] = &r
	}
	return true, nil
}

// fill is a kind.Fill.
func (g *gathered) fill(ctx context.Context, entries iter.Seq[*sqlstore.Entry]) iter.Seq2[*sqlstore.Entry, error] {
	return func(yield func(*sqlstore.Entry, error) bool) {
		var part []*sqlstore.Entry
		size := 0
		for e := range entries {
			next := int(g.rows[e.Revision].Size)
			if len(part) > 0 && (size+next > partBytes || len(part) == partRows) {
				if !g.yieldPart(ctx, part, size, yield) {
					return
				}
				part, size = part[:0], 0
			}
			part, size = append(part, e), size+next
		}
		if len(part) > 0 {
			g.yieldPart(ctx, part, size, yield)
		}
	}
}

// yieldPart yields a part with data. It returns false to stop.
func (g *gathered) yieldPart(ctx context.Context, part []*sqlstore.Entry, size int, yield func(*sqlstore.Entry, error) bool) bool {
	rows, largest := make([]*changelog.HistoryRow, len(part)), 0
	for i, e := range part {
		if rows[i] = g.rows[e.Revision]; g.wantsTouched(rows[i]) {
			largest = max(largest, int(rows[i].Size))
		}
	}
	giveBack, err := g.borrow(ctx, partCopies*size+comparedCopies*largest)
	if err != nil {
		yield(nil, err)
		return false
	}
	defer giveBack()
	there, err := g.Store.OldEntries(ctx, rows)
	if err != nil {
		yield(nil, err)
		return false
	}
	before := g.beforeIn(rows)
	for i, e := range part {
		var t touched
		if j := before[i]; j >= 0 && g.wantsTouched(rows[i]) {
			t = compareVersions(there[j], there[i])
		} else if t, err = g.touchedBy(ctx, rows[i], there[i]); err != nil {
			yield(nil, err)
			return false
		}
		whole := withData(e, there[i], t)
		there[i] = nil
		if !yield(whole, nil) {
			return false
		}
	}
	return true
}

// borrow waits until so much memory is free.
func (w *walk) borrow(ctx context.Context, size int) (giveBack func(), err error) {
	who := ""
	if w.rights.who != nil {
		who = w.rights.who.GetName()
	}
	giveBack, err = w.Store.Borrow(ctx, who, size)
	if errors.Is(err, sqlstore.ErrBusy) {
		err = apierrors.NewTooManyRequests("too many old versions are being read, try again later", 1)
	}
	return giveBack, err
}

// noData is the end of a version without data.
const noData = "null}"

// withData returns the entry of a version with the object's data and the fields that the change touched.
func withData(e, object *sqlstore.Entry, t touched) *sqlstore.Entry {
	data, unreadable := dataOf(object)
	head, end := bytes.TrimSuffix(e.Value, []byte(noData)), t.fields()
	value := make([]byte, 0, len(head)+len(data)+len("null")+len(`,"unreadable":}`)+2*len(unreadable)+len(end))
	value = append(value, head...)
	if unreadable != "" {
		text, _ := json.Marshal(unreadable) // a string can be encoded
		value = append(append(value, `null,"unreadable":`...), text...)
	} else {
		value = append(value, data...)
	}
	return e.With(e.Revision, append(append(value, end...), '}'))
}

// dataOf returns an object's data, or why it cannot be read.
func dataOf(e *sqlstore.Entry) (data []byte, unreadable string) {
	if reason := e.Unreadable(); reason != nil {
		return nil, reason.Error()
	}
	if !json.Valid(e.Value) {
		return nil, fmt.Sprintf("%q at revision %d is not JSON", e.Key, e.Revision)
	}
	return e.Value, ""
}

// addData adds an object's data and the touched fields to a version. It adds nothing to a change.
func (w *walk) addData(ctx context.Context, v *v1.Version, row *changelog.HistoryRow) error {
	if !w.form.values {
		return nil
	}
	entries, err := w.Store.OldEntries(ctx, []*changelog.HistoryRow{row})
	if err != nil {
		return err
	}
	setData(v, entries[0])
	t, err := w.touchedBy(ctx, row, entries[0])
	t.set(v)
	return err
}

func setData(v *v1.Version, e *sqlstore.Entry) {
	data, unreadable := dataOf(e)
	v.Data, v.Unreadable = runtime.RawExtension{Raw: data}, unreadable
}
