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

// What objects were is read while an answer is written, a part at a time, so that a page takes no more memory than one
// part. All requests together borrow the room for their parts from the Store.
const (
	partBytes = 512 << 10 // of values, about: the last one may be larger
	partRows  = 100
	// partCopies is how often a value is in memory until it is sent: from the driver, as readers saw it, in its
	// version, and in what is sent.
	partCopies = 4
)

// gathered is a page of changes or versions without data.
type gathered struct {
	*walk
	kind *kind.Kind
	room int // bytes

	bytes   int
	entries []*sqlstore.Entry
	rows    map[int64]*changelog.HistoryRow // by revision, if data is to be added
}

// take is a visit. The first change is always taken.
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
		r := *row // one of a page of rows, which need not stay
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
				if !g.give(ctx, part, size, yield) {
					return
				}
				part, size = part[:0], 0
			}
			part, size = append(part, e), size+next
		}
		if len(part) > 0 {
			g.give(ctx, part, size, yield)
		}
	}
}

// give yields a part with data. It is false if that was the last one.
func (g *gathered) give(ctx context.Context, part []*sqlstore.Entry, size int, yield func(*sqlstore.Entry, error) bool) bool {
	rows, largest := make([]*changelog.HistoryRow, len(part)), 0
	for i, e := range part {
		if rows[i] = g.rows[e.Revision]; g.touches(rows[i]) {
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
		if j := before[i]; j >= 0 && g.touches(rows[i]) {
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

// borrow waits for room for so many bytes.
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

// noData is what a version without data ends with.
const noData = "null}"

// withData returns an entry of a version with what its object was, and what the change touched.
func withData(e, object *sqlstore.Entry, t touched) *sqlstore.Entry {
	data, unreadable := dataOf(object)
	head, end := bytes.TrimSuffix(e.Value, []byte(noData)), t.fields()
	value := make([]byte, 0, len(head)+len(data)+len("null")+len(`,"unreadable":}`)+2*len(unreadable)+len(end))
	value = append(value, head...)
	if unreadable != "" {
		text, _ := json.Marshal(unreadable) // a string
		value = append(append(value, `null,"unreadable":`...), text...)
	} else {
		value = append(value, data...)
	}
	return e.With(e.Revision, append(append(value, end...), '}'))
}

// dataOf returns what an object was, or why that cannot be read.
func dataOf(e *sqlstore.Entry) (data []byte, unreadable string) {
	if reason := e.Unreadable(); reason != nil {
		return nil, reason.Error()
	}
	if !json.Valid(e.Value) {
		return nil, fmt.Sprintf("%q at revision %d is not JSON", e.Key, e.Revision)
	}
	return e.Value, ""
}

// addData adds to a version what its object was, and what the change touched; to a change nothing.
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
