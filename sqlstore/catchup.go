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
func (s *Store) catchUp(target int64) error {
	s.lag.begins()
	err := s.bringTo(target)
	if err == nil {
		s.lag.ends()
	}
	return err
}

func (s *Store) bringTo(target int64) error {
	if s.tail.back == nil {
		err := s.readOn(target)
		if !errors.Is(err, changelog.ErrSetBack) {
			return err
		}
	}
	return s.goOnAbove()
}

// readOn reads rows from the log until there are no more. Then revision target, which was seen in
// the log, is applied, unless the database has lost it: InnoDB shows a commit to others before it is
// durable. Other rows will get its ids then, so that what was not read must not count as applied.
func (s *Store) readOn(target int64) error {
	for {
		limit, applied := s.tail.page.Limit(), s.Revision()
		rows, err := s.boundedRows(applied, limit)
		if errors.Is(err, changelog.ErrCompacted) {
			return s.reload(applied, s.boundedHead)
		}
		if err != nil {
			return fmt.Errorf("catch up from revision %d: %w", s.shown(applied), err)
		}
		full := len(rows) == limit || !s.raw && changelog.Heavy(rows)
		if rows = rows[:s.wholeRows(rows, full)]; full && len(rows) == 0 {
			s.tail.page.Grow() // a revision is larger than the page
			continue
		}
		if s.mayLackRows() || !s.complete(rows, applied, target, full) {
			if reloaded, err := s.reloadIfSwept(applied); reloaded || err != nil {
				return err
			}
		}
		if err := s.applyRows(rows); errors.Is(err, changelog.ErrCompacted) {
			return s.reload(applied, s.boundedHead)
		} else if err != nil {
			return fmt.Errorf("catch up from revision %d: %w", s.shown(applied), err)
		}
		s.tail.page.Read(len(rows), pages.Bytes(rows))
		switch {
		case full: // there may be more
		case s.end(s.Revision()) < target:
			s.tail.forget(target)
			return nil
		default:
			s.state.advance(target)
			return nil
		}
	}
}

// wholeRows returns how many rows of a page can be applied: not a part of a revision, which
// becomes visible at once.
func (s *Store) wholeRows(rows []changelog.Row, full bool) int {
	if !full {
		return len(rows)
	}
	return s.whole(len(rows), func(i int) int64 { return rows[i].Revision })
}

// mayLackRows says that ids do not tell whether rows are missing: another process may have swept the
// last rows of a revision that has several, and its other rows look like all of it.
func (s *Store) mayLackRows() bool { return s.raw && !s.log.Exclusive() }

// complete says that no revision is missing between applied and the last row of a
// page, nor up to target if it is the last page.
func (s *Store) complete(rows []changelog.Row, applied, target int64, full bool) bool {
	last := applied
	for i := range rows {
		if !s.follows(last, rows[i].Revision) {
			return false
		}
		last = rows[i].Revision
	}
	return full || s.end(last) >= target
}

// reloadIfSwept reads the state anew if rows after applied may have been compacted
// away: a replica that was cut off for longer than the history cannot know what was
// deleted in the meantime. The floor is read after the rows: if it permits them, none was
// missing when they were read.
func (s *Store) reloadIfSwept(applied int64) (reloaded bool, err error) {
	head, err := s.boundedHead()
	if err != nil {
		return false, err
	}
	if head.Floor <= s.end(applied) {
		s.raiseFloor(head.Floor)
		return false, nil
	}
	return true, s.reload(applied, func() (changelog.Head, error) { return head, nil })
}

// reload reads the state anew because rows after applied, or the row itself, were compacted away: a
// replica was cut off for long, or another one has found the database set back, and raised the floor.
func (s *Store) reload(applied int64, readHead func() (changelog.Head, error)) error {
	head, err := readHead()
	if err != nil {
		return err
	}
	above, err := s.raisedAbove(applied)
	if err != nil {
		return fmt.Errorf("read whether the database was set back: %w", err)
	}
	if above > 0 {
		s.tail.back = &goingBack{served: s.served(), above: above, told: true}
		return s.goOnAbove()
	}
	s.o.Log.Warn("the database was compacted beyond what this server has read; reading the state anew", "floor", s.shown(head.Floor), "revision", s.shown(applied))
	return s.loadAnew()
}

func (s *Store) applyRows(rows []changelog.Row) error {
	ctx, cancel := context.WithTimeout(s.ctx, pageTransform)
	defer cancel()
	updates := s.tail.updates[:0]
	for i := range rows {
		updates = append(updates, update{entry: s.open(ctx, &rows[i]), deleted: rows[i].Deleted})
	}
	err := s.readPrevs(updates)
	if err == nil {
		s.state.apply(updates)
		s.tellUpdates(updates)
		if n := len(rows); n > 0 {
			s.saw(rows[n-1].Revision, rows[n-1].At)
		}
	}
	clear(updates)
	s.tail.updates = updates[:0]
	return err
}

// loadAnew is load for a log that was opened long ago, and may be another one by now.
func (s *Store) loadAnew() error {
	if err := s.checkCluster(s.ctx); err != nil {
		return err
	}
	return s.load(s.ctx)
}

// load reads the whole state at the head and puts it in the place of the one that is there.
func (s *Store) load(ctx context.Context) error {
	for {
		head, err := s.log.Head(ctx)
		if err != nil {
			return err
		}
		loaded, bad, newest, err := s.readState(ctx, head.Revision, s.pageReader(ctx))
		if errors.Is(err, changelog.ErrCompacted) {
			continue // the floor has passed the head just read
		}
		if err != nil {
			return fmt.Errorf("at revision %d: %w", s.shown(head.Revision), err)
		}
		if newest, err = s.newestRow(ctx, head, newest); err != nil {
			return fmt.Errorf("read the newest row: %w", err)
		}
		s.authors.stale.Store(true)
		s.sawState(head.Revision, newest)
		s.state.replace(loaded, bad.Objects, head)
		s.tellUnreadable(&bad)
		return nil
	}
}

// newestRow returns the row at the head, which may be a tombstone, or else the newest one in force.
func (s *Store) newestRow(ctx context.Context, head changelog.Head, inForce changelog.Row) (changelog.Row, error) {
	if s.log.Exclusive() || head.Revision == 0 || inForce.Revision == head.Revision {
		return inForce, nil
	}
	found, at, err := s.log.Time(ctx, head.Revision)
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
func (s *Store) pageReader(ctx context.Context) readPage {
	if s.raw {
		if size, err := s.log.Size(ctx); err != nil || size.Bytes > int64(s.o.CacheBytes) {
			return s.log.Keys
		}
	}
	return s.log.State
}

// readState returns all entries by resource, those that cannot be read, and which of the rows is the newest.
func (s *Store) readState(ctx context.Context, revision int64, page readPage) (loaded map[string]*entryMap, bad UnreadableError, newest changelog.Row, err error) {
	from, to := s.o.Format.Range()
	next := func(from string, limit int) ([]changelog.Row, error) {
		ctx, cancel := context.WithTimeout(ctx, pageTimeout)
		defer cancel()
		return page(ctx, from, to, revision, limit)
	}
	loaded = make(map[string]*entryMap)
	var held evictor
	held.init(s.o.StateBytes)
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
			name := s.o.Format.ResourceOf(rows[i].Key)
			if loaded[name] == nil {
				loaded[name] = new(entryMap)
			}
			e := s.loadedEntry(keys, &rows[i])
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
func (s *Store) loadedEntry(ctx context.Context, row *changelog.Row) *Entry {
	if !s.raw {
		return s.entryOf(ctx, row)
	}
	return rawEntry(row, row.Value)
}
