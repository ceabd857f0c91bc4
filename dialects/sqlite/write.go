package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// writer is the one connection that writes, with its prepared statements.
type writer struct {
	conn                    *sqlite.SQLiteConn
	begin, commit, rollback *stmt
	head, newest, insert    *stmt
	// Of a log of raw keys alone.
	after, lease, grant, revoke *stmt

	prepared []*stmt

	rows  []changelog.Row // of the transaction; kept for the next one
	drawn int64           // newest revision of the transaction
	wrote load            // what the transaction writes
	last  int64           // the same of those that were committed: the log's head never falls below
}

// stmt is a prepared statement with room for its arguments and one row of its result,
// so that running it allocates next to nothing.
type stmt struct {
	*sqlite.SQLiteStmt
	args []driver.NamedValue
	row  []driver.Value
}

func openWriter(name string, d Durability, kind changelog.Kind) (*writer, error) {
	conn, err := connector(name + "&_journal_mode=WAL&_synchronous=" + string(d)).Connect(context.Background())
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn.(*sqlite.SQLiteConn)}
	if err := w.prepare(kind); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *writer) prepare(kind changelog.Kind) error {
	// No more than 16 MiB stay on disk as the log's file after a burst. What is deleted is overwritten
	// where that costs no further writes to the disk; see Forget.
	settings := fmt.Sprintf(`PRAGMA wal_autocheckpoint = %d; PRAGMA journal_size_limit = 16777216; PRAGMA secure_delete = FAST`, mostLogPages)
	if _, err := w.conn.Exec(settings, nil); err != nil {
		return err
	}
	statements := w.statements()
	if kind == changelog.KindEtcd {
		statements = w.rawStatements()
	}
	for _, s := range statements {
		prepared, err := w.conn.Prepare(s.sql)
		if err != nil {
			return err
		}
		*s.stmt = newStmt(prepared.(*sqlite.SQLiteStmt), s.columns)
		w.prepared = append(w.prepared, *s.stmt)
	}
	// SQLite opens the write-ahead log at the first read or write after journal_mode. Until
	// then the writer does not count as a user of it, and the last reader that closes would
	// delete its file.
	_, err := w.head.one()
	return err
}

// statement is what is to be prepared.
type statement struct {
	stmt    **stmt
	columns int // of its result
	sql     string
}

func (w *writer) statements() []statement {
	return []statement{
		{&w.begin, 0, `BEGIN IMMEDIATE`},
		{&w.commit, 0, `COMMIT`},
		{&w.rollback, 0, `ROLLBACK`},
		{&w.head, 4, `
			SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'),
			       coalesce((SELECT max(id) FROM log), 0),
			       coalesce((SELECT at FROM log ORDER BY id DESC LIMIT 1), 0),
			       (SELECT value FROM meta WHERE name = 'mark/moved')`},
		{&w.newest, 3, `SELECT id, create_id, deleted FROM log WHERE key = ? ORDER BY id DESC LIMIT 1`},
		{&w.insert, 0, `INSERT INTO log (id, key, create_id, deleted, at, value, author, audit_id) VALUES (?, ?, ?, ?, ?, ?, nullif(?, 0), ?)`},
	}
}

func (w *writer) rawStatements() []statement {
	return append(w.statements()[:5], []statement{
		{&w.insert, 0, `INSERT INTO log (id, key, create_id, deleted, at, value, version, lease) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`},
		{&w.after, 8, `SELECT id, key, create_id, deleted, at, value, version, lease FROM log WHERE id > ? ORDER BY id LIMIT ?`},
		{&w.lease, 2, `SELECT ttl, expires FROM lease WHERE id = ?`},
		{&w.grant, 0, `INSERT INTO lease (id, ttl, expires) VALUES (?, ?, ?)`},
		{&w.revoke, 0, `DELETE FROM lease WHERE id = ?`},
	}...)
}

// close ends the connection. Its statements go first: SQLite keeps a connection that still
// has one open, with its files and its memory, and leaves the write-ahead log behind.
func (w *writer) close() error {
	var errs []error
	for _, s := range w.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func newStmt(prepared *sqlite.SQLiteStmt, columns int) *stmt {
	s := &stmt{prepared, make([]driver.NamedValue, prepared.NumInput()), make([]driver.Value, columns)}
	for i := range s.args {
		s.args[i].Ordinal = i + 1
	}
	return s
}

// run executes s. A statement is not given a context: each is short and local, and a
// context would cost a goroutine each time.
func (s *stmt) run() error {
	_, err := s.ExecContext(context.Background(), s.args)
	return err
}

// one fetches the first row into s.row; found says whether there was one.
func (s *stmt) one() (found bool, err error) {
	rows, err := s.QueryContext(context.Background(), s.args)
	if err != nil {
		return false, err
	}
	err = rows.Next(s.row)
	if closeErr := rows.Close(); err == nil {
		err = closeErr
	}
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// each calls f with every row, which f must not keep.
func (s *stmt) each(f func(row []driver.Value)) error {
	rows, err := s.QueryContext(context.Background(), s.args)
	if err != nil {
		return err
	}
	for err = rows.Next(s.row); err == nil; err = rows.Next(s.row) {
		f(s.row)
	}
	if closeErr := rows.Close(); errors.Is(err, io.EOF) {
		err = closeErr
	}
	return err
}

// use lends the writer to f.
func (l *database) use(ctx context.Context, f func(*writer) error) error {
	select {
	case <-l.closed:
		return changelog.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w := <-l.writer:
		defer func() { l.writer <- w }()
		return classify(f(w))
	case <-l.closed:
		return changelog.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transact runs f in a transaction that holds the write lock. A commit counts only if the
// files are still where they were opened.
func (l *database) transact(ctx context.Context, f func(*writer) error) error {
	if l.place == nil {
		return l.use(ctx, func(w *writer) error { return w.transact(f) })
	}
	if err := l.place.now(); err != nil {
		return err
	}
	err := l.use(ctx, func(w *writer) error {
		if err := w.transact(f); err != nil {
			return err
		}
		l.checkpoints.note(w.wrote)
		if err := l.place.check(); err != nil {
			return fmt.Errorf("%w: %w", changelog.ErrUnknown, l.place.look())
		}
		return nil
	})
	if isFull(err) {
		l.disk.ranOut()
	}
	return err
}

func (w *writer) transact(f func(*writer) error) error {
	w.drawn, w.wrote = 0, load{} // what a transaction drew that was rolled back does not count
	if err := w.begin.run(); err != nil {
		return err
	}
	if err := f(w); err != nil {
		w.abandon()
		return err
	}
	if err := w.commit.run(); err != nil {
		w.abandon()
		return commitError(err)
	}
	w.last = max(w.last, w.drawn)
	return nil
}

// abandon ends a transaction that SQLite may have rolled back already.
func (w *writer) abandon() {
	if !w.conn.AutoCommit() {
		_ = w.rollback.run()
	}
}

// Append writes a batch. Once the write lock is held ctx is not looked at any more: all
// that follows is local and short.
func (l appender) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	if l.kind != changelog.KindAPI && len(batch) > 0 {
		return changelog.Appended{}, fmt.Errorf("append batch: %w", changelog.ErrKind)
	}
	a := changelog.Appended{Results: make([]changelog.Result, len(batch))}
	err := l.transact(ctx, func(w *writer) error {
		w.wrote = loadOf(batch)
		if err := l.checkRoom(w); err != nil {
			return err
		}
		return w.appendBatch(batch, &a)
	})
	if err != nil {
		return changelog.Appended{}, fmt.Errorf("append batch: %w", l.notice(err))
	}
	return a, nil
}

// notice keeps an error of a writing transaction in mind if it lasts.
func (l *database) notice(err error) error {
	if errors.Is(err, errSetBack) && l.place != nil {
		l.place.spoil(errSetBack)
		return l.place.look()
	}
	return err
}

func (w *writer) appendBatch(batch []changelog.Change, a *changelog.Appended) error {
	var head changelog.Head
	if err := w.findHead(&head, &a.At); err != nil {
		return err
	}
	if to, ok := w.head.row[3].(string); ok {
		return changelog.Moved(to)
	}
	a.Head, a.Floor = head.Revision, head.Floor
	for i := range batch {
		if err := w.findNewest(batch[i].Key, &a.Results[i]); err != nil {
			return err
		}
	}
	w.rows = a.Judge(batch, w.rows[:0])
	defer clear(w.rows) // of values
	for i := range w.rows {
		if err := w.insertRow(&w.rows[i]); err != nil {
			return err
		}
	}
	w.drawn = a.Head + int64(len(w.rows))
	return nil
}

// findHead reads the end of the log, and the time for what comes after it.
func (w *writer) findHead(h *changelog.Head, at *int64) error {
	if _, err := w.head.one(); err != nil {
		return err
	}
	h.Floor = w.head.row[0].(int64)
	h.Revision = max(w.head.row[1].(int64), h.Floor)
	if h.Revision < w.last {
		return errSetBack
	}
	*at = max(time.Now().UnixMilli(), w.head.row[2].(int64))
	return nil
}

// findNewest reads the newest row of key into r, as Appended.Judge takes it.
func (w *writer) findNewest(key string, r *changelog.Result) error {
	w.newest.args[0].Value = key
	exists, err := w.newest.one()
	if exists {
		row := w.newest.row
		r.Found, r.CreateRevision, r.FoundDeleted = row[0].(int64), row[1].(int64), row[2].(int64) != 0
	}
	return err
}

func (w *writer) insertRow(r *changelog.Row) error {
	v := w.insert.args
	v[0].Value, v[1].Value, v[2].Value = r.Revision, r.Key, r.CreateRevision
	v[3].Value, v[4].Value, v[5].Value = r.Deleted, r.At, r.Value
	v[6].Value, v[7].Value = r.Author, r.AuditID
	return w.insert.run()
}
