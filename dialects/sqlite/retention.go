package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// useRetention notes in table kept whether past is in use. since is the revision from which on it has
// been, or negative.
func (w *writer) useRetention(retention *changelog.Retention, since, floor int64) (err error) {
	switch {
	case retention == nil && since >= 0:
		_, err = w.exec(`DELETE FROM kept`)
	case retention != nil && since < 0:
		_, err = w.exec(`INSERT INTO kept (prefix, lost) VALUES ('', ?)`, floor)
	}
	return err
}

// move copies those of the rows to past that a step of compaction deletes and that retention names, and notes
// what is lost of the others.
func (w *writer) move(swept, upto int64, retention *changelog.Retention) (kept int64, err error) {
	old, bytes, err := w.old(swept, upto)
	if err != nil {
		return 0, err
	}
	sorted := retention.Sort(old, time.Now().UnixMilli())
	if len(sorted.Kept) > 0 {
		if kept, err = w.insertPast(sorted.Kept); err != nil {
			return 0, err
		}
		w.wrote.rows, w.wrote.bytes = w.wrote.rows+int(kept), w.wrote.bytes+bytes
	}
	lost := sorted.Lost
	for n, keys := range sorted.Counts {
		if lost, err = w.beyond(lost, n, keys); err != nil {
			return 0, err
		}
	}
	_, err = w.lose(lost)
	return kept, err
}

// old returns the rows that the rows in (swept, upto] supersede, and the tombstones among these, with
// the bytes of all their values. Each key's are in order. A tombstone is not superseded: it is among
// the rows, or was deleted when it was.
func (w *writer) old(swept, upto int64) (old []changelog.Old, bytes int64, err error) {
	err = w.rowsOf(`
		SELECT l.id, l.key, l.at, l.deleted, length(l.value), coalesce(p.id, 0), coalesce(length(p.value), 0)
		FROM log AS l NOT INDEXED
		LEFT JOIN log AS p
		       ON p.id = (SELECT max(o.id) FROM log AS o WHERE o.key = l.key AND o.id < l.id)
		      AND p.deleted = 0
		WHERE l.id > ? AND l.id <= ?
		ORDER BY l.id`, []any{swept, upto}, func(row []driver.Value) {
		o := changelog.Old{UntilID: row[0].(int64), Key: row[1].(string), UntilAt: row[2].(int64)}
		if o.ID = row[5].(int64); o.ID != 0 {
			old = append(old, o)
			bytes += row[6].(int64)
		}
		if row[3].(int64) != 0 {
			o.ID = o.UntilID
			old = append(old, o)
			bytes += row[4].(int64)
		}
	})
	return old, bytes, err
}

// insertPast copies rows from log to past.
func (w *writer) insertPast(rows []changelog.Old) (int64, error) {
	list := make([][4]int64, len(rows))
	for i, o := range rows {
		list[i] = [4]int64{o.ID, o.UntilID, o.UntilAt, o.Expires}
	}
	values, err := json.Marshal(list)
	if err != nil {
		return 0, err
	}
	kept, bytes, err := w.count(`
		INSERT INTO past (id, key, create_id, deleted, at, until_id, until_at, expires, author, audit_id, value)
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, e.value ->> 1, e.value ->> 2, e.value ->> 3, l.author, l.audit_id, l.value
		FROM json_each(?) AS e
		CROSS JOIN log AS l ON l.id = e.value ->> 0
		RETURNING octet_length(key) + octet_length(value)`, string(values))
	if err != nil {
		return 0, err
	}
	return kept, w.addPast(bytes)
}

// count runs a statement that returns a number of bytes for each row that it changes, and adds them up.
func (w *writer) count(query string, args ...any) (rows, bytes int64, err error) {
	err = w.each(query, args, func(row []int64) { rows, bytes = rows+1, bytes+row[0] })
	return rows, bytes, err
}

// beyond adds what n rows in past of each key leave no room for.
func (w *writer) beyond(lost []changelog.Cut, n int, keys []string) ([]changelog.Cut, error) {
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	err = w.each(`
		SELECT e.key, p.id, p.until_id
		FROM json_each(?1) AS e
		CROSS JOIN past AS p
		        ON p.id = (SELECT o.id FROM past AS o WHERE o.key = e.value ORDER BY o.id DESC LIMIT 1 OFFSET ?2)`,
		[]any{string(list), n}, func(row []int64) {
			lost = append(lost, changelog.Cut{Key: keys[row[0]], ID: row[1], Until: row[2]})
		})
	return lost, err
}

// lose deletes from past what is lost, and notes that.
func (w *writer) lose(lost []changelog.Cut) (deleted int64, err error) {
	if len(lost) == 0 {
		return 0, nil
	}
	cuts := make([][2]any, len(lost))
	for i, c := range lost {
		cuts[i] = [2]any{c.Key, c.ID}
	}
	list, err := json.Marshal(cuts)
	if err != nil {
		return 0, err
	}
	deleted, bytes, err := w.count(`
		DELETE FROM past WHERE id IN (
			SELECT p.id
			FROM json_each(?) AS e
			CROSS JOIN past AS p INDEXED BY past_key_id ON p.key = e.value ->> 0 AND p.id <= e.value ->> 1)
		RETURNING octet_length(key) + octet_length(value)`, string(list))
	if err != nil {
		return 0, err
	}
	if deleted > 0 {
		if err := w.addPast(-bytes); err != nil {
			return 0, err
		}
	}
	w.wrote.rows += int(deleted)
	for prefix, revision := range changelog.Lost(lost) {
		if err := w.noteLost(prefix, revision); err != nil {
			return 0, err
		}
	}
	return deleted, nil
}

func (w *writer) noteLost(prefix string, revision int64) error {
	_, err := w.exec(`
		INSERT INTO kept (prefix, lost) VALUES (?1, ?2)
		ON CONFLICT (prefix) DO UPDATE SET lost = max(lost, excluded.lost)`, prefix, revision)
	return err
}
