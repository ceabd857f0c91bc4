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
	rows    map[int64]*sqlstore.HistoryRow // by revision, if data is to be added
}

// take is a visit. The first change is always taken.
func (g *gathered) take(v *v1.Version, row *sqlstore.HistoryRow) (bool, error) {
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
			g.rows = map[int64]*sqlstore.HistoryRow{}
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
	giveBack, err := g.borrow(ctx, size)
	if err != nil {
		yield(nil, err)
		return false
	}
	defer giveBack()
	rows := make([]*sqlstore.HistoryRow, len(part))
	for i, e := range part {
		rows[i] = g.rows[e.Revision]
	}
	there, err := g.Store.OldEntries(ctx, rows)
	if err != nil {
		yield(nil, err)
		return false
	}
	for i, e := range part {
		whole := withData(e, there[i])
		there[i] = nil
		if !yield(whole, nil) {
			return false
		}
	}
	return true
}

// borrow waits for room for values.
func (w *walk) borrow(ctx context.Context, size int) (giveBack func(), err error) {
	who := ""
	if w.rights.who != nil {
		who = w.rights.who.GetName()
	}
	giveBack, err = w.Store.Borrow(ctx, who, partCopies*size)
	if errors.Is(err, sqlstore.ErrBusy) {
		err = apierrors.NewTooManyRequests("too many old versions are being read, try again later", 1)
	}
	return giveBack, err
}

// noData is what a version without data ends with.
const noData = "null}"

// withData returns an entry of a version with what its object was.
func withData(e, object *sqlstore.Entry) *sqlstore.Entry {
	data, unreadable := dataOf(object)
	head := bytes.TrimSuffix(e.Value, []byte(noData))
	value := make([]byte, 0, len(head)+len(data)+len("null")+len(`,"unreadable":}`)+2*len(unreadable))
	value = append(value, head...)
	if unreadable != "" {
		text, _ := json.Marshal(unreadable) // a string
		value = append(append(value, `null,"unreadable":`...), text...)
	} else {
		value = append(value, data...)
	}
	return e.With(e.Revision, append(value, '}'))
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

// addData adds to a version what its object was; to a change nothing.
func (r *resources) addData(ctx context.Context, v *v1.Version, row *sqlstore.HistoryRow) error {
	if !r.form.values {
		return nil
	}
	entries, err := r.Store.OldEntries(ctx, []*sqlstore.HistoryRow{row})
	if err == nil {
		setData(v, entries[0])
	}
	return err
}

func setData(v *v1.Version, e *sqlstore.Entry) {
	data, unreadable := dataOf(e)
	v.Data, v.Unreadable = runtime.RawExtension{Raw: data}, unreadable
}
