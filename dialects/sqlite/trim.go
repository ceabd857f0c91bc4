package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Trim deletes rows of past that have expired. It looks whether there are any before it keeps others
// from writing.
func (l compaction) Trim(ctx context.Context, retention *changelog.Retention, now int64, limit int) (c changelog.Compacted, err error) {
	l.changesPast.Lock()
	defer l.changesPast.Unlock()
	var due bool
	if retention == nil {
		err = l.reads.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM past) OR EXISTS (SELECT 1 FROM kept)`).Scan(&due)
	} else {
		err = l.reads.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM past WHERE expires <= ?)`, now).Scan(&due)
	}
	err = classify(err)
	if err == nil && due {
		err = l.transact(ctx, func(w *writer) (err error) {
			if l.pastHeld() {
				c.Busy = true
				return errNothing
			}
			if c.Deleted, err = w.trim(retention, now, limit); err != nil {
				return err
			}
			return w.turn()
		})
	}
	if err != nil && err != errNothing {
		return changelog.Compacted{}, fmt.Errorf("trim the past: %w", err)
	}
	return c, nil
}

func (w *writer) trim(retention *changelog.Retention, now int64, limit int) (int64, error) {
	if retention == nil {
		if _, err := w.exec(`DELETE FROM kept`); err != nil {
			return 0, err
		}
		if err := w.forgetPastData(); err != nil {
			return 0, err
		}
		deleted, err := w.exec(`DELETE FROM past WHERE id IN (SELECT id FROM past ORDER BY id LIMIT ?)`, limit)
		w.wrote.rows = int(deleted)
		return deleted, err
	}
	var lost []changelog.Old
	err := w.rowsOf(`SELECT id, key, until_id FROM past WHERE expires <= ? ORDER BY expires, id LIMIT ?`,
		[]any{now, limit}, func(row []driver.Value) {
			lost = append(lost, changelog.Old{ID: row[0].(int64), Key: row[1].(string), UntilID: row[2].(int64)})
		})
	if err != nil {
		return 0, err
	}
	return w.lose(changelog.Cuts(lost))
}

// Refit gives rows of past another expiry.
func (l compaction) Refit(ctx context.Context, retention *changelog.Retention, after int64, limit int) (changelog.Compacted, error) {
	l.changesPast.Lock()
	defer l.changesPast.Unlock()
	c := changelog.Compacted{Swept: after}
	err := l.transact(ctx, func(w *writer) error {
		if l.pastHeld() {
			c.Busy = true
			return errNothing
		}
		if err := w.refit(&c, retention, limit); err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil && err != errNothing {
		return changelog.Compacted{}, fmt.Errorf("fit the past to other rules: %w", err)
	}
	return c, nil
}

func (w *writer) refit(c *changelog.Compacted, retention *changelog.Retention, limit int) (err error) {
	var rows []changelog.Old
	err = w.rowsOf(`SELECT id, key, until_id, until_at, expires FROM past WHERE id > ? ORDER BY id LIMIT ?`,
		[]any{c.Swept, limit}, func(row []driver.Value) {
			rows = append(rows, changelog.Old{
				ID: row[0].(int64), Key: row[1].(string), UntilID: row[2].(int64), UntilAt: row[3].(int64), Expires: row[4].(int64)})
		})
	if err != nil || len(rows) == 0 {
		return err
	}
	c.Swept = rows[len(rows)-1].ID
	changed, counts := retention.Refit(rows)
	if len(changed) > 0 {
		if err := w.setExpiry(changed); err != nil {
			return err
		}
	}
	var lost []changelog.Cut
	for n, keys := range counts {
		if lost, err = w.beyond(lost, n, keys); err != nil {
			return err
		}
	}
	c.Deleted, err = w.lose(lost)
	return err
}

func (w *writer) setExpiry(rows []changelog.Old) error {
	list := make([][2]int64, len(rows))
	for i, o := range rows {
		list[i] = [2]int64{o.ID, o.Expires}
	}
	values, err := json.Marshal(list)
	if err != nil {
		return err
	}
	n, err := w.exec(`
		UPDATE past SET expires = e.value ->> 1
		FROM json_each(?) AS e
		WHERE past.id = e.value ->> 0`, string(values))
	w.wrote.rows = int(n)
	return err
}
