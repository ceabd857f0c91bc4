package sqlite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// forgetStep is how many versions go in one transaction.
const forgetStep = 500

// Forget deletes the old versions of a key. SQLite overwrites what is deleted meanwhile. What
// other transactions delete it overwrites only in pages that stay in use (see writer.prepare); the
// others leave the file with Reclaim.
func (l compaction) Forget(ctx context.Context, key string) (removed int64, err error) {
	if l.kind != changelog.KindAPI {
		return 0, fmt.Errorf("forget %s: %w", key, changelog.ErrKind)
	}
	l.changesPast.Lock()
	defer l.changesPast.Unlock()
	for more := true; more && err == nil; {
		err = l.transact(ctx, func(w *writer) error {
			if _, err := w.exec(`PRAGMA secure_delete = ON`); err != nil {
				return err
			}
			defer func() { _, _ = w.exec(`PRAGMA secure_delete = FAST`) }()
			n, err := w.forget(key)
			more = n >= forgetStep
			removed += n
			if err != nil {
				return err
			}
			return w.turn()
		})
	}
	if err == nil {
		err = l.Reclaim(ctx)
	}
	if err != nil {
		return removed, fmt.Errorf("forget %s: %w", key, err)
	}
	return removed, nil
}

// forget deletes the oldest of a key's versions in past, and when there are no more, those in log.
func (w *writer) forget(key string) (removed int64, err error) {
	var ids []int64
	var last, until int64
	err = w.each(`SELECT id, until_id FROM past WHERE key = ? ORDER BY id LIMIT ?`, []any{key, forgetStep}, func(row []int64) {
		ids = append(ids, row[0])
		last, until = row[0], row[1]
	})
	if err != nil {
		return 0, err
	}
	if len(ids) > 0 {
		if removed, err = w.lose([]changelog.Cut{{Key: key, ID: last, Until: until}}); err != nil || len(ids) == forgetStep {
			return removed, err
		}
	}
	n, err := w.forgetNow(key)
	return removed + n, err
}

// forgetNow deletes the versions in log but the current one. Then the floor is the head: it keeps the
// place of the newest row if that is a tombstone and goes.
func (w *writer) forgetNow(key string) (removed int64, err error) {
	var floor, head, newest, since int64
	err = w.scan(`
		SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'),
		       coalesce((SELECT max(id) FROM log), 0),
		       coalesce((SELECT id FROM log WHERE key = ?1 ORDER BY id DESC LIMIT 1), 0),
		       coalesce((SELECT lost FROM kept WHERE prefix = ''), -1)`, []any{key}, &floor, &head, &newest, &since)
	if err != nil || newest == 0 {
		return 0, err
	}
	removed, err = w.exec(`DELETE FROM log WHERE key = ?1 AND (id < ?2 OR deleted = 1)`, key, newest)
	if err != nil || removed == 0 {
		return 0, err
	}
	w.wrote.rows += int(removed)
	if since >= 0 {
		if err := w.noteLost(changelog.ResourceOf(key), newest); err != nil {
			return 0, err
		}
	}
	_, err = w.exec(`UPDATE meta SET value = ? WHERE name = 'floor'`, strconv.FormatInt(max(floor, head), 10))
	return removed, err
}
