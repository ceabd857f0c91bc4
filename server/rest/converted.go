package rest

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Entries of a Kind with a Conversion are brought to its version before anybody looks into
// them, as many as there are at once. What comes out is kept with the entry, as renderings
// are, and shared: a thousand watches of an object cause one call of the webhook. Failures
// are not kept; who waited for the same call gets the same.

// convertedKey names an entry's conversions among its memos, by Kind, see objectKey, and
// marks what came out of one.
type convertedKey struct {
	version string
	gone    <-chan struct{}
}

type isConvertedKey struct{}

// conversion is a memo's value: an attempt, and after a failure none.
type conversion struct{ attempt atomic.Pointer[attempt] }

// attempt is one try to convert an entry.
type attempt struct {
	done  chan struct{} // closed when the rest is final
	entry *sqlstore.Entry
	err   error
}

// isConverted tells whether an entry is the outcome of a conversion.
func isConverted(k *kind.Kind, e *sqlstore.Entry) bool {
	if k.Conversion == nil {
		return false
	}
	_, ok := e.Recall(isConvertedKey{})
	return ok
}

func markConverted(e *sqlstore.Entry) { e.Memo(isConvertedKey{}, func() any { return true }) }

// loadEntry decodes an entry to hub form.
func loadEntry(k *kind.Kind, e *sqlstore.Entry) (runtime.Object, error) {
	if isConverted(k, e) {
		return k.Conversion.Load(e.JSON)
	}
	return k.Codec.Load(e.JSON)
}

// encode makes of an object in hub form what the log holds.
func (q *request) encode(obj runtime.Object) ([]byte, error) {
	if c := q.kind.Conversion; c != nil {
		stored, err := c.Write(q.r.Context(), obj)
		if err != nil {
			return nil, conversionError(err)
		}
		obj = stored
	}
	return q.kind.Codec.Store(obj)
}

// conversionError keeps the end of the request's time apart from what a webhook did.
func conversionError(err error) error {
	if isOutOfTime(err) {
		return err
	}
	return plain(err)
}

// convertedFor is convertedEntry if the selection looks at more than the key.
func (q *request) convertedFor(sel *selection, e *sqlstore.Entry) (*sqlstore.Entry, error) {
	if e == nil || !sel.looksInside() {
		return e, nil
	}
	return q.convertedEntry(e)
}

func (q *request) convertedEntry(e *sqlstore.Entry) (*sqlstore.Entry, error) {
	if q.kind.Conversion == nil {
		return e, nil
	}
	out, err := q.converted([]*sqlstore.Entry{e})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// converted returns entries in the Kind's version; those that are in it already, and all
// of Kinds that need no conversion, are returned as they are.
func (q *request) converted(entries []*sqlstore.Entry) ([]*sqlstore.Entry, error) {
	c := q.kind.Conversion
	if c == nil {
		return entries, nil
	}
	out := append([]*sqlstore.Entry(nil), entries...)
	var missing []int
	for i, e := range out {
		if !isConverted(q.kind, e) && c.Needed(e.JSON) {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 {
		var err error
		if missing, err = q.convertMissing(out, missing); err != nil {
			return nil, conversionError(err)
		}
	}
	return out, nil
}

// convertMissing fills in out's entries at the places in missing: it begins attempts for
// those that nobody is at, and waits for the others. It returns the places whose attempt
// ended with the request that had begun it.
func (q *request) convertMissing(out []*sqlstore.Entry, missing []int) (again []int, err error) {
	attempts := make([]*attempt, len(missing))
	var own []int
	for j, i := range missing {
		var begun bool
		if attempts[j], begun = q.attempt(out[i]); begun {
			own = append(own, j)
		}
	}
	if len(own) > 0 {
		q.convertOwn(out, missing, attempts, own)
	}
	ctx := q.r.Context()
	for j, i := range missing {
		select {
		case <-attempts[j].done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch err := attempts[j].err; {
		case err == nil:
			out[i] = attempts[j].entry
		case isOutOfTime(err) && ctx.Err() == nil:
			again = append(again, i)
		default:
			return nil, err
		}
	}
	return again, nil
}

// attempt is the present attempt to convert an entry, and whether the caller has begun it.
func (q *request) attempt(e *sqlstore.Entry) (a *attempt, begun bool) {
	key := convertedKey{q.version, q.kind.Gone}
	c := e.Memo(key, func() any { return &conversion{} }).(*conversion)
	fresh := &attempt{done: make(chan struct{})}
	for {
		if a := c.attempt.Load(); a != nil {
			return a, false
		}
		if c.attempt.CompareAndSwap(nil, fresh) {
			return fresh, true
		}
	}
}

// convertOwn makes the attempts that this request has begun, in one go.
func (q *request) convertOwn(out []*sqlstore.Entry, missing []int, attempts []*attempt, own []int) {
	var results [][]byte
	err := context.Canceled // of whoever waits, if Read panics
	defer func() {
		for n, j := range own {
			e, a := out[missing[j]], attempts[j]
			if a.err = err; err == nil {
				a.entry = &sqlstore.Entry{Key: e.Key, Revision: e.Revision, CreateRevision: e.CreateRevision, At: e.At, JSON: results[n]}
				markConverted(a.entry)
			} else {
				c, _ := e.Recall(convertedKey{q.version, q.kind.Gone})
				c.(*conversion).attempt.CompareAndSwap(a, nil)
			}
			close(a.done)
		}
	}()
	stored := make([][]byte, len(own))
	for n, j := range own {
		stored[n] = out[missing[j]].JSON
	}
	results, err = q.kind.Conversion.Read(q.r.Context(), stored)
}

// convertedEvents are events with entries in the Kind's version. What an object was before
// counts only for those who select by it.
func (s *watching) convertedEvents(events []*sqlstore.Event) ([]*sqlstore.Event, error) {
	if s.q.kind.Conversion == nil || len(events) == 0 {
		return events, nil
	}
	inside := s.sel.looksInside()
	var entries []*sqlstore.Entry
	for _, e := range events {
		entries = append(entries, e.Entry)
		if inside && e.Prev != nil {
			entries = append(entries, e.Prev)
		}
	}
	entries, err := s.q.converted(entries)
	if err != nil {
		return nil, err
	}
	out := make([]*sqlstore.Event, len(events))
	for i, e := range events {
		changed := *e
		changed.Entry, entries = entries[0], entries[1:]
		if inside && e.Prev != nil {
			changed.Prev, entries = entries[0], entries[1:]
		}
		out[i] = &changed
	}
	return out, nil
}

// convertedAt is how many objects are converted at a time while a list looks for those
// that are selected.
const convertedAt = 500

// each calls visit with the entries of a range, in a form that sel can look into, until it
// returns false.
func (q *request) each(ctx context.Context, view sqlstore.View, sel *selection, from, to string, visit func(*sqlstore.Entry) bool) error {
	if q.kind.Conversion == nil || !sel.looksInside() {
		return view.Scan(ctx, from, to, visit)
	}
	for {
		var some []*sqlstore.Entry
		err := view.Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
			some = append(some, e)
			return len(some) < convertedAt
		})
		if err != nil {
			return err
		}
		full := len(some) == convertedAt
		if full {
			from = some[convertedAt-1].Key + "\x00"
		}
		if some, err = q.converted(some); err != nil {
			return err
		}
		for _, e := range some {
			if !visit(e) {
				return nil
			}
		}
		if !full {
			return nil
		}
	}
}
