package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

// loader reads the whole state. It is called by Open, and then by the tail's goroutine.
type loader struct {
	*shared
	state   *state
	values  *values
	witness *witness
	authors *authors
}

// load reads the whole state at the head and puts it in the place of the one that is there.
func (l *loader) load(ctx context.Context) error {
	for {
		head, err := l.log.Head(ctx)
		if err != nil {
			return err
		}
		loaded, bad, newest, err := l.readState(ctx, head.Revision, l.pageReader(ctx))
		if errors.Is(err, changelog.ErrCompacted) {
			continue // the floor has passed the head just read
		}
		if err != nil {
			return fmt.Errorf("at revision %d: %w", l.shown(head.Revision), err)
		}
		if newest, err = l.newestRow(ctx, head, newest); err != nil {
			return fmt.Errorf("read the newest row: %w", err)
		}
		l.authors.stale.Store(true)
		l.witness.sawState(head.Revision, newest)
		l.state.replace(loaded, bad.Objects, head)
		l.values.tellUnreadable(&bad)
		return nil
	}
}

// newestRow returns the row at the head, which may be a tombstone, or else the newest one in force.
func (l *loader) newestRow(ctx context.Context, head changelog.Head, inForce changelog.Row) (changelog.Row, error) {
	if l.log.Exclusive() || head.Revision == 0 || inForce.Revision == head.Revision {
		return inForce, nil
	}
	found, at, err := l.log.Time(ctx, head.Revision)
	if err == nil && found == head.Revision {
		inForce = changelog.Row{Revision: found, At: at}
	}
	return inForce, err
}

// pageTimeout bounds the reading of one page. Reading all pages has no bound, but a database
// that hangs in between must not keep a start waiting for ever.
const pageTimeout = 2 * time.Minute

// readPage is Log.State, or Log.Keys.
type readPage func(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error)

// pageReader chooses what of the rows is read: without values, if these are more than may stay in memory.
func (l *loader) pageReader(ctx context.Context) readPage {
	if l.resident == 0 {
		return l.log.State
	}
	if size, err := l.log.Size(ctx); err != nil || size.Bytes > int64(l.resident) {
		return l.log.Keys
	}
	return l.log.State
}

// readState returns all entries by resource, those that cannot be read, and which of the rows is the newest.
func (l *loader) readState(ctx context.Context, revision int64, page readPage) (loaded map[string]*entryMap, bad UnreadableError, newest changelog.Row, err error) {
	from, to := l.o.Format.Range()
	next := func(from string, limit int) ([]changelog.Row, error) {
		ctx, cancel := context.WithTimeout(ctx, pageTimeout)
		defer cancel()
		return page(ctx, from, to, revision, limit)
	}
	loaded = make(map[string]*entryMap)
	var held evictor
	held.init(l.o.StateBytes)
	var all resource
	keys, cancel := context.WithTimeout(ctx, loadTransform)
	defer cancel()
	for rows, err := range pages.Ahead(pages.ByKey(from, next)) {
		if err != nil {
			return nil, bad, newest, err
		}
		for i := range rows {
			if rows[i].Revision > newest.Revision {
				newest = changelog.Row{Revision: rows[i].Revision, At: rows[i].At}
			}
			name := l.o.Format.ResourceOf(rows[i].Key)
			if loaded[name] == nil {
				loaded[name] = new(entryMap)
			}
			e := l.values.entryOf(keys, &rows[i])
			if held.over() && e.Value != nil {
				e = e.withoutValue()
			}
			held.count(&all, nil, e)
			loaded[name].Set(e.Key, e)
			bad.note(e)
		}
	}
	return loaded, bad, newest, nil
}
