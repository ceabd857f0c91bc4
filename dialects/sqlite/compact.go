package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Compact sweeps the next rows and moves the floor over them. Each row swept takes its
// predecessor with it: older ones went when the predecessor was swept. So the cost does
// not depend on how long a key's history is.
func (l compaction) Compact(ctx context.Context, through int64, limit int, retention *changelog.Retention) (changelog.Compacted, error) {
	l.changesPast.Lock()
	defer l.changesPast.Unlock()
	var c changelog.Compacted
	err := l.transact(ctx, func(w *writer) (err error) {
		if l.held() {
			c.Busy = true
			return errNothing
		}
		c, err = w.compact(through, limit, retention)
		return err
	})
	if err != nil && err != errNothing {
		return changelog.Compacted{}, fmt.Errorf("compact: %w", err)
	}
	return c, nil
}

func (w *writer) compact(through int64, limit int, retention *changelog.Retention) (c changelog.Compacted, err error) {
	var newest, since int64
	err = w.scan(`
		SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'),
		       (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'swept'),
		       coalesce((SELECT max(id) FROM log), 0),
		       coalesce((SELECT lost FROM kept WHERE prefix = ''), -1)`, nil, &c.Floor, &c.Swept, &newest, &since)
	through = min(through, newest-1)
	if err != nil || through <= c.Swept {
		return c, err
	}
	upto, err := w.stepEnd(c.Swept, through, limit)
	if err != nil {
		return c, err
	}
	if err := w.useRetention(retention, since, c.Floor); err != nil {
		return c, err
	}
	if retention != nil {
		if c.Kept, err = w.move(c.Swept, upto, retention); err != nil {
			return c, err
		}
	}
	superseded, err := w.supersede(c.Swept, upto)
	if err != nil {
		return c, err
	}
	tombstones, err := w.exec(`DELETE FROM log WHERE id > ? AND id <= ? AND deleted = 1`, c.Swept, upto)
	if err != nil {
		return c, err
	}
	w.wrote.rows += int(superseded + tombstones)
	if err := w.noteSwept(c.Swept, upto, retention); err != nil {
		return c, err
	}
	c.Swept, c.Floor, c.Deleted = upto, max(c.Floor, upto), superseded+tombstones
	if _, err := w.exec(`UPDATE meta SET value = ? WHERE name = 'floor'`, strconv.FormatInt(c.Floor, 10)); err != nil {
		return c, err
	}
	return c, w.turn()
}

// noteSwept notes how far the sweep came. If the bytes of past were known before, they still are, unless
// nothing moves there any more.
func (w *writer) noteSwept(before, now int64, retention *changelog.Retention) error {
	_, err := w.exec(`
		UPDATE meta SET value = CAST(?2 AS TEXT)
		WHERE name = 'swept' OR name = 'past_swept' AND value = CAST(?1 AS TEXT) AND ?3`, before, now, retention != nil)
	return err
}

// stepEnd returns where a step ends that looks at limit rows after an id, but for those above through.
func (w *writer) stepEnd(after, through int64, limit int) (upto int64, err error) {
	var rows, last int64
	err = w.scan(`
		SELECT count(*), coalesce(max(id), 0)
		FROM (SELECT id FROM log WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)`,
		[]any{after, through, limit}, &rows, &last)
	if rows == int64(limit) {
		return last, err
	}
	return through, err
}

// supersede deletes the predecessors of the rows in (after, upto].
func (w *writer) supersede(after, upto int64) (deleted int64, err error) {
	return w.exec(`
		DELETE FROM log WHERE id IN (
			SELECT (SELECT max(o.id) FROM log AS o WHERE o.key = l.key AND o.id < l.id)
			FROM log AS l NOT INDEXED
			WHERE l.id > ? AND l.id <= ?)`, after, upto)
}

// Supersede deletes the next predecessors.
func (l compaction) Supersede(ctx context.Context, after, through int64, limit int) (changelog.Compacted, error) {
	c := changelog.Compacted{Swept: after}
	err := l.transact(ctx, func(w *writer) error {
		err := w.scan(`SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'`, nil, &c.Floor)
		through = min(through, c.Floor)
		if err != nil || through <= after {
			return err
		}
		if c.Swept, err = w.stepEnd(after, through, limit); err != nil {
			return err
		}
		if c.Deleted, err = w.supersede(after, c.Swept); err != nil {
			return err
		}
		w.wrote.rows = int(c.Deleted)
		return w.turn()
	})
	if err != nil {
		return changelog.Compacted{}, fmt.Errorf("compact: %w", err)
	}
	return c, nil
}

// Raise lifts the floor above everything the log has.
func (l appender) Raise(ctx context.Context, revision int64) error {
	err := l.transact(ctx, func(w *writer) error {
		_, err := w.exec(`
			UPDATE meta SET value = CAST(?1 AS TEXT)
			WHERE name = 'floor' AND CAST(value AS INTEGER) < ?1
			  AND coalesce((SELECT max(id) FROM log), 0) < ?1`, revision)
		if err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil {
		return fmt.Errorf("raise floor: %w", err)
	}
	return nil
}

// vacuumPages is how many pages one step of Reclaim gives back while writers wait.
const vacuumPages = 256

// Reclaim gives free pages back to the file system and empties the write-ahead log.
func (l compaction) Reclaim(ctx context.Context) error {
	for {
		var free int64
		err := l.transact(ctx, func(w *writer) error {
			if err := w.drain(`PRAGMA incremental_vacuum(` + strconv.Itoa(vacuumPages) + `)`); err != nil {
				return err
			}
			if err := w.turn(); err != nil {
				return err
			}
			return w.scan(`PRAGMA freelist_count`, nil, &free)
		})
		if err != nil {
			return fmt.Errorf("reclaim pages: %w", err)
		}
		if free == 0 {
			break
		}
	}
	if l.path == "" {
		return nil // no write-ahead log
	}
	return l.truncateWAL(ctx)
}

// Defragment has nothing to do that Reclaim does not.
func (l compaction) Defragment(ctx context.Context) error { return l.Reclaim(ctx) }

// truncateWAL first copies what it can while nobody waits, then cuts the file. A reader
// in the way makes the cut fail, which is as good: the next one will do it.
func (l compaction) truncateWAL(ctx context.Context) error {
	if _, err := l.checkpoint(ctx); err != nil {
		return err
	}
	if errors.Is(l.Condition(), changelog.ErrFull) {
		return nil // the log's file is room that nobody else can take
	}
	err := l.use(ctx, func(w *writer) error {
		if _, err := w.exec(`PRAGMA busy_timeout = 20`); err != nil {
			return err
		}
		err := w.drain(`PRAGMA wal_checkpoint(TRUNCATE)`)
		if isCode(err, sqlite.ErrBusy) {
			err = nil
		}
		if _, e := w.exec(`PRAGMA busy_timeout = 10000`); err == nil {
			err = e
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("truncate write-ahead log: %w", err)
	}
	return nil
}
