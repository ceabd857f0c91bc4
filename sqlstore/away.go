package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Objects whose values are not in memory are away: the state has an entry with all but the value, which
// readers get from the log, by its revision. What a reader is given is never away: Get, Scan, Select and
// Fetched give entries that have their values, and so does each event. Only Outline and Hold give what Fetched
// is to read: a long list is gathered so, and its values pass through memory while it is written.

// awayPage bounds what is read at once for a scan.
const (
	awayFirst = 16 // a reader may want a few only
	awayPage  = 256
	awayBytes = 1 << 20 // each reader who does not read on holds so much
)

// sizeSteps is how many forms there are for each doubling of a value's size.
const sizeSteps = 16

// aways are the forms of entries that are away, by the size of the value: an entry of its own would take as
// much memory as a small value.
var aways = func() *[64 * sizeSteps]form {
	all := new([64 * sizeSteps]form)
	for i := range all {
		all[i].away = true
		all[i].size.Store(int64(sizeOfClass(i)))
	}
	return all
}()

// sizeClass returns the first class that has room for a size.
func sizeClass(size int) int {
	if size <= sizeSteps {
		return size
	}
	shift := bits.Len(uint(size-1)) - bits.Len(uint(sizeSteps))
	return shift*sizeSteps + (size-1)>>shift + 1
}

func sizeOfClass(class int) int {
	if class <= sizeSteps {
		return class
	}
	shift := (class - sizeSteps - 1) / sizeSteps
	return (class - shift*sizeSteps) << shift
}

// withoutValue returns what stays in memory of e, whose value is in the log.
func (e *Entry) withoutValue() *Entry {
	return &Entry{
		Key: e.Key, Revision: e.Revision, CreateRevision: e.CreateRevision, At: e.At,
		form: &aways[sizeClass(len(e.Value))],
	}
}

// fetch reads the values of entries that are away, and puts entries that have them in their place.
// ErrCompacted if the log lacks one: another change has taken its place, and was compacted.
func (v *values) fetch(ctx context.Context, entries []*Entry) error {
	var ids []int64
	for _, e := range entries {
		if e.isAway() {
			ids = append(ids, e.Revision)
		}
	}
	if ids == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, v.o.QueryTimeout)
	defer cancel()
	values, err := v.log.Values(ctx, ids)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	v.stats.valueReads.Add(int64(len(ids)))
	for i, e := range entries {
		if !e.isAway() {
			continue
		}
		value, ok := values[e.Revision]
		if !ok {
			return fmt.Errorf("read the value of %s at %d: %w", e.Key, e.Revision, changelog.ErrCompacted)
		}
		entries[i] = v.open(ctx, &changelog.Row{Key: e.Key, Revision: e.Revision, CreateRevision: e.CreateRevision, At: e.At, Value: value})
	}
	return nil
}

func (v *values) fetched(ctx context.Context, entries iter.Seq[*Entry]) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		var page []*Entry
		bytes, most := 0, awayFirst
		give := func() bool {
			if len(page) == 0 {
				return true
			}
			there := slices.Clone(page)
			if err := v.fetch(ctx, there); err != nil {
				yield(nil, err)
				return false
			}
			v.tellOf(v.state.keepFetched(page, there))
			for i, e := range there {
				if there[i] = nil; !yield(e, nil) {
					return false
				}
			}
			clear(page)
			page, bytes, most = page[:0], 0, min(2*most, awayPage)
			return true
		}
		for e := range entries {
			if len(page) == 0 && !e.isAway() {
				if !yield(e, nil) {
					return
				}
				continue
			}
			page = append(page, e)
			if bytes += e.size(); (len(page) >= most || bytes >= awayBytes) && !give() {
				return
			}
		}
		give()
	}
}

// withValue returns e with its value. Errors are those of fetch.
func (v *values) withValue(ctx context.Context, e *Entry) (*Entry, error) {
	one := []*Entry{e}
	err := v.fetch(ctx, one)
	return one[0], err
}

// fetchOne returns e with its value, and keeps it in memory if e is current. If another entry has taken the
// place of e in the meantime, it returns that one, or nil.
func (v *values) fetchOne(ctx context.Context, e *Entry) (*Entry, error) {
	for e.isAway() {
		there, err := v.withValue(ctx, e)
		if err == nil {
			v.swap(e, there)
			return there, nil
		}
		now := v.state.newest(e.Key)
		if !errors.Is(err, changelog.ErrCompacted) || now == e {
			return nil, err
		}
		if e = now; e == nil {
			return nil, nil
		}
	}
	return e, nil
}

// readableNow is Get without a read of the log: nil also if the value is not in memory.
func (v *values) readableNow(key string) *Entry {
	e := v.state.newest(key)
	if e != nil && e.isAway() {
		return nil
	}
	return v.readable(e)
}

// present is fetchOne for callers who have no error to return: what cannot be read now is an unreadable entry.
func (v *values) present(e *Entry) *Entry {
	there, err := v.fetchOne(v.ctx, e)
	if err != nil {
		if !errors.Is(err, changelog.ErrClosed) && !errors.Is(err, changelog.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
		}
		return &Entry{Key: e.Key, Revision: e.Revision, CreateRevision: e.CreateRevision, At: e.At, form: &form{sealed: &sealed{err: err}}}
	}
	return there
}
