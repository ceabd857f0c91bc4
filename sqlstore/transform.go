package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// values makes entries of rows, and gets the values that are not in memory. It has no state of its own.
type values struct {
	*shared
	state    *state
	cache    *cache
	newEntry func(*changelog.Row) *Entry // makes the entry that readers see of a row
	polls    chan struct{}               // has a token for each Poll that reads from the log
}

// entryOf returns the entry of a row that was read from the log: the one in the state
// if it is still current, so that readers share it and what was derived from it.
func (v *values) entryOf(ctx context.Context, row *changelog.Row) *Entry {
	if e := v.readableNow(row.Key); e != nil && e.Revision == row.Revision && e.At == row.At {
		v.cache.fill(e, row.Value)
		return e
	}
	return v.open(ctx, row)
}

const (
	// readAgainAfter is how long the reading of an unreadable object is not tried again.
	readAgainAfter = 200 * time.Millisecond
	// readAgainWait bounds one more try.
	readAgainWait = 5 * time.Second
	// pageTransform bounds what the values of one page of rows may wait for keys, so that a
	// key service that hangs does not keep the tail. What is not read then is read later.
	pageTransform = 2 * time.Second
	// loadTransform is the same for all pages of a full read.
	loadTransform = 10 * time.Second
)

// transformed is the form of all entries that can be read.
var transformed form

// isTransformed tells the stored form of a value from the value.
func (v *values) isTransformed(stored []byte) bool {
	return len(stored) > 0 && !v.o.Format.Plain(stored)
}

// hide returns the value to store of what readers see of e.
func (v *values) hide(e *Entry) []byte {
	if e.Unreadable() != nil {
		return nil
	}
	return v.o.Format.Hide(e.Value, e.Revision)
}

// transform sets what the log holds of c's value.
func (v *values) transform(ctx context.Context, c *Change) error {
	if v.o.Transformer == nil || c.stored != nil {
		return nil
	}
	stored, err := v.o.Transformer.ToStorage(ctx, c.Key, c.Value)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", &Unreadable{c.Key, 0, err})
	}
	if v.isTransformed(stored) {
		c.stored, c.form = stored, &transformed
	}
	return nil
}

// open makes the entry of a row from the log.
func (v *values) open(ctx context.Context, row *changelog.Row) *Entry {
	if v.o.Transformer == nil {
		return v.checked(row, row)
	}
	value, _, err := v.o.Transformer.FromStorage(ctx, row.Key, row.Value)
	if err != nil {
		f := &sealed{stored: row.Value, err: err, damaged: errors.Is(err, ErrUndecodable)}
		f.tried.Store(time.Now().UnixNano())
		return sealedEntry(row, f)
	}
	plain := *row
	plain.Value = value
	e := v.checked(row, &plain)
	if e.form == nil && v.isTransformed(row.Value) {
		e.form = &transformed
	}
	return e
}

func sealedEntry(row *changelog.Row, f *sealed) *Entry {
	return &Entry{Key: row.Key, Revision: row.Revision, CreateRevision: row.CreateRevision, At: row.At, form: &form{sealed: f}}
}

// checked makes the entry of a row, which has its value as readers see it in plain.
func (v *values) checked(row, plain *changelog.Row) *Entry {
	if v.o.Check == nil {
		return v.newEntry(plain)
	}
	if why := v.o.Check(plain.Key, plain.Value); why != nil {
		return sealedEntry(row, &sealed{stored: row.Value, damaged: true, err: fmt.Errorf("%w: %w", ErrUndecodable, why)})
	}
	return v.newEntry(plain)
}

// readable returns e, or what can be read now of an entry that could not be read before: a
// key may have come up meanwhile.
func (v *values) readable(e *Entry) *Entry {
	if e == nil || e.form == nil {
		return e
	}
	if e.isAway() {
		return v.present(e)
	}
	f := e.form.sealed
	if f == nil || f.stored == nil || f.damaged {
		return e
	}
	now, tried := time.Now().UnixNano(), f.tried.Load()
	if now-tried < int64(readAgainAfter) || !f.tried.CompareAndSwap(tried, now) {
		return e
	}
	ctx, cancel := context.WithTimeout(v.ctx, readAgainWait)
	defer cancel()
	again := v.open(ctx, &changelog.Row{Revision: e.Revision, Key: e.Key, CreateRevision: e.CreateRevision, At: e.At, Value: f.stored})
	v.swap(e, again)
	return again
}

// swap puts again in the place of e, if e is still there.
func (v *values) swap(e, again *Entry) {
	if v.state.swap(e, again) && again.isDamaged() {
		v.tellOf([]*Entry{again})
	}
}
