package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

// catchUp brings the state to what the log has.
func (t *tail) catchUp(target int64) error {
	t.lag.begins()
	err := t.bringTo(target)
	if err == nil {
		t.lag.ends()
	}
	return err
}

func (t *tail) bringTo(target int64) error {
	if t.setBacks.back == nil {
		err := t.readOn(target)
		if !errors.Is(err, changelog.ErrSetBack) {
			return err
		}
	}
	return t.setBacks.goOnAbove()
}

// readOn reads rows from the log until there are no more. Then revision target, which was seen in
// the log, is applied, unless the database has lost it: InnoDB shows a commit to others before it is
// durable. Other rows will get its ids then, so that what was not read must not count as applied.
func (t *tail) readOn(target int64) error {
	for {
		limit, applied := t.page.Limit(), t.state.applied.Load()
		rows, err := t.boundedRows(applied, limit)
		if errors.Is(err, changelog.ErrCompacted) {
			return t.reload(applied, t.boundedHead)
		}
		if err != nil {
			return fmt.Errorf("catch up from revision %d: %w", t.shown(applied), err)
		}
		full := len(rows) == limit || !t.raw && changelog.Heavy(rows)
		if rows = rows[:t.wholeRows(rows, full)]; full && len(rows) == 0 {
			t.page.Grow() // a revision is larger than the page
			continue
		}
		if t.mayLackRows() || !t.complete(rows, applied, target, full) {
			if reloaded, err := t.reloadIfSwept(applied); reloaded || err != nil {
				return err
			}
		}
		if err := t.applyRows(rows); errors.Is(err, changelog.ErrCompacted) {
			return t.reload(applied, t.boundedHead)
		} else if err != nil {
			return fmt.Errorf("catch up from revision %d: %w", t.shown(applied), err)
		}
		t.page.Read(len(rows), pages.Bytes(rows))
		switch {
		case full: // there may be more
		case t.end(t.state.applied.Load()) < target:
			t.hints.forget(target)
			return nil
		default:
			t.state.advance(target)
			return nil
		}
	}
}

// wholeRows returns how many rows of a page can be applied: not a part of a revision, which
// becomes visible at once.
func (t *tail) wholeRows(rows []changelog.Row, full bool) int {
	if !full {
		return len(rows)
	}
	return t.whole(len(rows), func(i int) int64 { return rows[i].Revision })
}

// mayLackRows says that ids do not tell whether rows are missing: another process may have swept the
// last rows of a revision that has several, and its other rows look like all of it.
func (t *tail) mayLackRows() bool { return t.raw && !t.log.Exclusive() }

// complete says that no revision is missing between applied and the last row of a
// page, nor up to target if it is the last page.
func (t *tail) complete(rows []changelog.Row, applied, target int64, full bool) bool {
	last := applied
	for i := range rows {
		if !t.follows(last, rows[i].Revision) {
			return false
		}
		last = rows[i].Revision
	}
	return full || t.end(last) >= target
}

// reloadIfSwept reads the state anew if rows after applied may have been compacted
// away: a replica that was cut off for longer than the history cannot know what was
// deleted in the meantime. The floor is read after the rows: if it permits them, none was
// missing when they were read.
func (t *tail) reloadIfSwept(applied int64) (reloaded bool, err error) {
	head, err := t.boundedHead()
	if err != nil {
		return false, err
	}
	if head.Floor <= t.end(applied) {
		t.state.raiseFloor(head.Floor)
		return false, nil
	}
	return true, t.reload(applied, func() (changelog.Head, error) { return head, nil })
}

// reload reads the state anew because rows after applied, or the row itself, were compacted away: a
// replica was cut off for long, or another one has found the database set back, and raised the floor.
func (t *tail) reload(applied int64, readHead func() (changelog.Head, error)) error {
	head, err := readHead()
	if err != nil {
		return err
	}
	above, err := t.setBacks.raisedAbove(applied)
	if err != nil {
		return fmt.Errorf("read whether the database was set back: %w", err)
	}
	if above > 0 {
		t.setBacks.back = &goingBack{served: t.witness.served(), above: above, told: true}
		return t.setBacks.goOnAbove()
	}
	t.o.Log.Warn("the database was compacted beyond what this server has read; reading the state anew", "floor", t.shown(head.Floor), "revision", t.shown(applied))
	return t.loadAnew()
}

func (t *tail) applyRows(rows []changelog.Row) error {
	ctx, cancel := context.WithTimeout(t.ctx, pageTransform)
	defer cancel()
	updates := t.updates[:0]
	for i := range rows {
		updates = append(updates, update{entry: t.values.open(ctx, &rows[i]), deleted: rows[i].Deleted})
	}
	err := t.values.readPrevs(updates)
	if err == nil {
		t.state.apply(updates)
		t.values.tellUpdates(updates)
		if n := len(rows); n > 0 {
			t.witness.saw(rows[n-1].Revision, rows[n-1].At)
		}
	}
	clear(updates)
	t.updates = updates[:0]
	return err
}

// loadAnew is load for a log that was opened long ago, and may be another one by now.
func (t *tail) loadAnew() error {
	if err := t.setBacks.checkCluster(t.ctx); err != nil {
		return err
	}
	return t.loader.load(t.ctx)
}

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

// pageReader chooses what of the rows is read: without the values of raw keys, if these are more
// than may stay in memory.
func (l *loader) pageReader(ctx context.Context) readPage {
	if l.raw {
		if size, err := l.log.Size(ctx); err != nil || size.Bytes > int64(l.o.CacheBytes) {
			return l.log.Keys
		}
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
			e := l.values.loadedEntry(keys, &rows[i])
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

// loadedEntry is entryOf for a row of a full read, which may have come without its value: NULL
// is not a value, and a row that has none has no bytes.
func (v *values) loadedEntry(ctx context.Context, row *changelog.Row) *Entry {
	if !v.raw {
		return v.entryOf(ctx, row)
	}
	return rawEntry(row, row.Value)
}
