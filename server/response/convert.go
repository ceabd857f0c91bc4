package response

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Entries of a Kind with a Conversion are converted to its version before anything looks into
// them, as many in one call as there are. The outcome is kept with the entry, as renderings
// are, and shared: a thousand watches of an object cause one call of the webhook. A failure is
// not kept, but all requests that waited for the same call get it.

// convertedKey names an entry's conversion to one version of one Kind among the entry's memos,
// see objectKey. isConvertedKey marks an entry that is the outcome of a conversion.
type convertedKey struct {
	version string
	gone    <-chan struct{}
}

type isConvertedKey struct{}

// conversion is a memo's value: the present attempt. After a failure there is none.
type conversion struct{ attempt atomic.Pointer[attempt] }

// attempt is one try to convert an entry.
type attempt struct {
	done  chan struct{} // closed when the rest is final
	entry *sqlstore.Entry
	err   error
}

// IsConverted tells whether an entry is the outcome of a conversion.
func IsConverted(k *kind.Kind, e *sqlstore.Entry) bool {
	return k.Conversion() != nil && WasConverted(e)
}

// WasConverted is IsConverted for an entry whose Kind is not at hand.
func WasConverted(e *sqlstore.Entry) bool {
	_, ok := e.Recall(isConvertedKey{})
	return ok
}

// MarkConverted marks an entry as the outcome of a conversion.
func MarkConverted(e *sqlstore.Entry) { e.Memo(isConvertedKey{}, func() any { return true }) }

// Load decodes an entry to hub form.
func Load(k *kind.Kind, e *sqlstore.Entry) (runtime.Object, error) {
	if IsConverted(k, e) {
		return k.Conversion().Load(e.Value)
	}
	return k.Codec.Load(e.Value)
}

// ConversionError returns the answer to a conversion that failed: a timeout if the request's
// own time is over, else the webhook's error.
func ConversionError(err error) error {
	if IsOutOfTime(err) {
		return err
	}
	return AsStatus(err)
}

// Convert returns entries in a version of their Kind. Entries that are in it already, and all
// of a Kind that needs no conversion, are returned as they are.
func Convert(ctx context.Context, k *kind.Kind, version string, entries []*sqlstore.Entry) ([]*sqlstore.Entry, error) {
	if k.Conversion() == nil {
		return entries, nil
	}
	out := append([]*sqlstore.Entry(nil), entries...)
	var missing []int
	for i, e := range out {
		if !IsConverted(k, e) && k.Conversion().Needed(e.Value) {
			missing = append(missing, i)
		}
	}
	c := converter{k, version}
	for len(missing) > 0 {
		var err error
		if missing, err = c.convertMissing(ctx, out, missing); err != nil {
			return nil, ConversionError(err)
		}
	}
	return out, nil
}

// ConvertEntry is Convert for one entry.
func ConvertEntry(ctx context.Context, k *kind.Kind, version string, e *sqlstore.Entry) (*sqlstore.Entry, error) {
	if k.Conversion() == nil {
		return e, nil
	}
	out, err := Convert(ctx, k, version, []*sqlstore.Entry{e})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// converter converts entries of one Kind to one version.
type converter struct {
	kind    *kind.Kind
	version string
}

// convertMissing fills in out's entries at the places in missing. It begins an attempt for each
// entry that has none and waits for the others' attempts. It returns the places whose attempt
// ended because the request that had begun it ended.
func (c converter) convertMissing(ctx context.Context, out []*sqlstore.Entry, missing []int) (again []int, err error) {
	attempts := make([]*attempt, len(missing))
	var own []int
	for j, i := range missing {
		var begun bool
		if attempts[j], begun = c.attempt(out[i]); begun {
			own = append(own, j)
		}
	}
	if len(own) > 0 {
		c.convertOwn(ctx, out, missing, attempts, own)
	}
	for j, i := range missing {
		select {
		case <-attempts[j].done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch err := attempts[j].err; {
		case err == nil:
			out[i] = attempts[j].entry
		case IsOutOfTime(err) && ctx.Err() == nil:
			again = append(again, i)
		default:
			return nil, err
		}
	}
	return again, nil
}

// attempt returns the present attempt to convert an entry, and whether the caller has begun it.
func (c converter) attempt(e *sqlstore.Entry) (a *attempt, begun bool) {
	key := convertedKey{c.version, c.kind.Gone()}
	memo := e.Memo(key, func() any { return &conversion{} }).(*conversion)
	fresh := &attempt{done: make(chan struct{})}
	for {
		if a := memo.attempt.Load(); a != nil {
			return a, false
		}
		if memo.attempt.CompareAndSwap(nil, fresh) {
			return fresh, true
		}
	}
}

// convertOwn makes the attempts that this request has begun, in one call of the webhook. own
// has their indexes in attempts.
func (c converter) convertOwn(ctx context.Context, out []*sqlstore.Entry, missing []int, attempts []*attempt, own []int) {
	var results [][]byte
	err := context.Canceled // for the requests that wait, if Read panics
	defer func() {
		for n, j := range own {
			e, a := out[missing[j]], attempts[j]
			if a.err = err; err == nil {
				a.entry = &sqlstore.Entry{Key: e.Key, Revision: e.Revision, CreateRevision: e.CreateRevision, At: e.At, Value: results[n]}
				MarkConverted(a.entry)
			} else {
				memo, _ := e.Recall(convertedKey{c.version, c.kind.Gone()})
				memo.(*conversion).attempt.CompareAndSwap(a, nil)
			}
			close(a.done)
		}
	}()
	stored := make([][]byte, len(own))
	for n, j := range own {
		stored[n] = out[missing[j]].Value
	}
	results, err = c.kind.Conversion().Read(ctx, stored)
}
