package history

import (
	"context"
	"encoding/json"
	"errors"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/plinth-io/plinth/server/history/fieldsets"
	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	// A version has at most mostTouched fields of at most mostTouchedBytes.
	mostTouched      = 100
	mostTouchedBytes = 8 << 10
	// comparedCopies is how many copies of a value are in memory while it is compared: both values as JSON
	// and decoded.
	comparedCopies = 8
)

// touched has the fields that a change touched. The zero value means that they are not known.
type touched struct {
	Names []string `json:"touched,omitempty"`
	More  int64    `json:"moreTouched,omitempty"`
}

// wantsTouched reports whether a version needs its touched fields: the request asks for them, and the change
// updated an object.
func (w *walk) wantsTouched(row *changelog.HistoryRow) bool {
	return w.q.touched && w.q.at == 0 && !row.Deleted && row.CreateRevision != row.Revision && row.Revision > w.Store.Brought()
}

// touchedBy compares an object after a change with its version before, which it reads.
func (w *walk) touchedBy(ctx context.Context, row *changelog.HistoryRow, after *sqlstore.Entry) (touched, error) {
	if !w.wantsTouched(row) {
		return touched{}, nil
	}
	before, err := w.before(ctx, row)
	if before == nil || err != nil {
		return touched{}, err
	}
	return compareVersions(before, after), nil
}

// before returns the version of an object before a change; nil if it is not stored any more, or if the caller
// may not see it.
func (w *walk) before(ctx context.Context, row *changelog.HistoryRow) (*sqlstore.Entry, error) {
	rows, err := w.Store.Past(ctx, row.Key, row.Key+"\x00", row.Revision-1, 1)
	if err == nil && len(rows) == 1 && rows[0].CreateRevision == row.CreateRevision {
		var may bool
		if may, err = w.maySeeRow(ctx, &rows[0]); may {
			var entries []*sqlstore.Entry
			if entries, err = w.Store.OldEntries(ctx, []*changelog.HistoryRow{&rows[0]}); err == nil {
				return entries[0], nil
			}
		}
	}
	if errors.Is(err, changelog.ErrCompacted) {
		err = nil
	}
	return nil, err
}

func (w *walk) maySeeRow(ctx context.Context, row *changelog.HistoryRow) (bool, error) {
	p, ok := placeOf(row.Key)
	if !ok {
		return false, nil
	}
	v := w.kinds.describe(row, p, w.Store.Brought())
	return w.rights.maySee(ctx, p, row.Key, &v)
}

// beforeIn returns for each row of a part, newest first, the index of the version before; -1 if it is not in
// the part.
func (w *walk) beforeIn(rows []*changelog.HistoryRow) []int {
	out, last, all := make([]int, len(rows)), map[string]int{}, w.q.allOfObjects()
	for i := len(rows) - 1; i >= 0; i-- {
		out[i] = -1
		if j, ok := last[rows[i].Key]; ok && all && rows[j].CreateRevision == rows[i].CreateRevision {
			out[i] = j
		}
		last[rows[i].Key] = i
	}
	return out
}

// compareVersions returns the fields in which two versions differ, and nothing if one of them cannot be read.
func compareVersions(before, after *sqlstore.Entry) touched {
	var old, new map[string]any
	if before.Unreadable() != nil || after.Unreadable() != nil ||
		utiljson.Unmarshal(before.Value, &old) != nil || utiljson.Unmarshal(after.Value, &new) != nil {
		return touched{}
	}
	names, more := fieldsets.Names(old, new, mostTouched, mostTouchedBytes)
	return touched{names, int64(more)}
}

// fields returns the touched fields as the end of a JSON object.
func (t touched) fields() []byte {
	text, _ := json.Marshal(t) // strings and a number can be encoded
	if len(text) <= len("{}") {
		return nil
	}
	text[0] = ','
	return text[:len(text)-1]
}

func (t touched) set(v *v1.Version) { v.Touched, v.MoreTouched = t.Names, t.More }
