package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// SQLite replays a write-ahead log into whatever file it lies beside. If a backup was put in
// the place of a database whose process had been killed, that undoes the restore, or ends in
// a file that is neither. So each start stamps the file, and the next one compares the stamps
// of the file alone with those of the file under its log.
//
// A stamp is a random number, the epoch, in two places:
//
//   - in the table sqlite_sequence, in a row of its own. SQLite keeps the newest revision
//     there, so that each append writes this page and every log has it;
//   - as the file's schema version, which SQLite changes in copies that it makes: ".backup"
//     starts again at a small number, VACUUM INTO adds one. An index or view that somebody
//     adds by hand adds one, too, but the counter of changes tells that file from a copy.
//
// The file has the epoch from the start on, not only its log: newEpoch ends with a checkpoint.

const (
	epochRow = "plinth epoch" // the epoch
	openRow  = "plinth open"  // 1 while a process has the database open
	turnRow  = "plinth turn"  // counts transactions that append nothing, so that they write the page too

	leastEpoch   = 1 << 20 // above what copies of copies come to
	epochSpan    = 1 << 16 // how many changes of the schema by hand are believed
	leastChanges = 8       // a copy begins with one or two
)

// stamp is what tells one state of a file from another.
type stamp struct {
	schema  uint32 // schema version in the file's header
	changes uint32 // counter of changes in the header
	epoch   uint32 // 0: the file has never been stamped
	turn    int64
	head    int64 // newest revision
	open    bool
	// openedAs is the path that the file was opened by; its log lies beside that.
	openedAs string
}

// isCopy says that SQLite made the file out of a stamped one.
func (m stamp) isCopy() bool {
	return m.epoch != 0 && (m.schema-m.epoch >= epochSpan || m.changes < leastChanges)
}

// headerSize is the size of the header; see
// https://sqlite.org/fileformat2.html#the_database_header.
const headerSize = 100

// readHeader reads the two numbers that are in the file's header.
func readHeader(f io.ReaderAt) (m stamp, err error) {
	var header [headerSize]byte
	if _, err := f.ReadAt(header[:], 0); errors.Is(err, io.EOF) {
		return m, errors.New("file is not a database")
	} else if err != nil {
		return m, err
	}
	m.changes = binary.BigEndian.Uint32(header[24:])
	m.schema = binary.BigEndian.Uint32(header[40:])
	return m, nil
}

// fileStamp reads the stamp of the file alone, as if there were no log.
func fileStamp(path string) (stamp, error) {
	f, err := os.Open(path)
	if err != nil {
		return stamp{}, err
	}
	defer f.Close()
	m, err := readHeader(f)
	if err != nil {
		return m, err
	}
	return m, readRows(uri(path)+"?mode=ro&immutable=1", &m)
}

// readRows reads the rest of the stamp from tables, through SQLite. A file without
// sqlite_sequence was never stamped.
func readRows(name string, m *stamp) error {
	db := sql.OpenDB(connector(name))
	defer db.Close()
	var tables int
	if err := db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'`).Scan(&tables); err != nil || tables == 0 {
		return err
	}
	return db.QueryRow(`
		SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0),
		       coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0),
		       coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0),
		       coalesce((SELECT value FROM meta WHERE name = 'opened_as'), ''),
		       coalesce((SELECT max(id) FROM log), 0),
		       schema_version
		FROM pragma_schema_version`, epochRow, openRow, turnRow).Scan(&m.epoch, &m.open, &m.turn, &m.openedAs, &m.head, &m.schema)
}

// startsFrom says whether m is what a start makes of other: a new stamp and nothing else.
func (m stamp) startsFrom(other stamp) bool {
	return m.schema == m.epoch && m.turn == 0 && m.head == other.head
}

// newEpoch gives the file that is opened by path a new epoch and returns the epoch. db is
// the only connection to the file.
func newEpoch(ctx context.Context, db *sql.DB, path string) (uint32, error) {
	epoch := leastEpoch + rand.Uint32N(1<<30)
	// After this the log is empty: a start that is cut off below leaves one commit in it.
	if _, err := db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return 0, err
	}
	if err := setEpoch(ctx, db, epoch, path); err != nil {
		return 0, err
	}
	if _, err := db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return 0, err
	}
	return epoch, nil
}

func setEpoch(ctx context.Context, db *sql.DB, epoch uint32, path string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	_, err = tx.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name IN (?, ?, ?)`, epochRow, openRow, turnRow)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?), (?, 1), (?, 0)`, epochRow, epoch, openRow, turnRow)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO meta (name, value) VALUES ('opened_as', ?1)
		ON CONFLICT (name) DO UPDATE SET value = ?1`, path)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA schema_version = %d`, epoch)); err != nil {
		return err
	}
	return tx.Commit()
}

// raiseCounter makes the file's counter of changes larger than that of a copy. db is the only
// connection. It must not use a write-ahead log, because the counter stays the same then.
func raiseCounter(ctx context.Context, db *sql.DB) error {
	for i := range leastChanges {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, (i+1)%leastChanges)); err != nil {
			return err
		}
	}
	return nil
}

// turn makes a transaction that appends nothing write the page of the epoch.
func (w *writer) turn() error {
	_, err := w.exec(`UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = ?`, turnRow)
	return err
}

// closed notes that the file has all that its log had.
func (w *writer) closed() error {
	_, err := w.exec(`UPDATE sqlite_sequence SET seq = 0 WHERE name = ?`, openRow)
	return err
}

// errForeignLog says that a write-ahead log is not that of the file.
var errForeignLog = errors.New("write-ahead log is of another file")

// checkLog looks at the file as the last process left it, before SQLite does. It returns
// errForeignLog if the write-ahead log beside the file is of another state of it, or is not
// there because the file was open under another name. It returns a warning if the log is
// not there under the same name. If the stamp cannot be read, SQLite judges the file: a
// checkpoint that was cut off leaves a file that SQLite repairs from its log.
func checkLog(path string) (warning string, err error) {
	alone, err := fileStamp(path)
	if err != nil {
		return "", nil
	}
	commits, err := countCommits(path + "-wal")
	if errors.Is(err, os.ErrNotExist) && alone.open && !alone.isCopy() {
		return missingLog(path, alone.openedAs)
	}
	if err != nil || commits == 0 {
		return "", nil
	}
	var both stamp
	bothErr := readRows(uri(path)+"?mode=ro", &both)
	switch {
	case alone.isCopy(), bothErr != nil, both.epoch != alone.epoch && !(commits == 1 && both.startsFrom(alone)):
		return "", fmt.Errorf("%w: %s-wal is of the file that was here before %[2]s was put in its place, such as by restoring a backup, and would undo that; "+
			"to go on with %[2]s as it is, remove %[2]s-wal and %[2]s-shm", errForeignLog, path)
	}
	return "", nil
}

// missingLog judges a file that was not closed and has no log beside it.
func missingLog(path, openedAs string) (warning string, err error) {
	if openedAs != "" && openedAs != path {
		return "", fmt.Errorf("%w: the database was open as %s and was not closed, so its last changes are in the log beside that name, %[2]s-wal; "+
			"open it by that name, or move that log to %[3]s-wal; if the log is gone for good, touch %[3]s-wal goes on without those changes", errForeignLog, openedAs, path)
	}
	return "the database was not closed and its write-ahead log is not there: if sqlite3 was used on it since, all is well; if the log was removed, the last changes are lost", nil
}

// checkStray refuses to make a database where the log of another one lies: SQLite would
// replay it into the new file.
func checkStray(path string) error {
	info, err := os.Stat(path + "-wal")
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: there is a write-ahead log, %s-wal, and no database %[2]s that it is of; put the database back, or move %[2]s-wal and %[2]s-shm away", errForeignLog, path)
}

// countCommits returns how many transactions a write-ahead log has that SQLite would replay,
// as far as two. See https://sqlite.org/fileformat2.html#the_write_ahead_log.
func countCommits(path string) (commits int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var header [32]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return 0, nil
	}
	size := int64(binary.BigEndian.Uint32(header[8:]))
	salts := [8]byte(header[16:24])
	var frame [24]byte
	for at := int64(len(header)); commits < 2; at += int64(len(frame)) + size {
		if _, err := f.ReadAt(frame[:], at); err != nil || [8]byte(frame[8:16]) != salts {
			break
		}
		if binary.BigEndian.Uint32(frame[4:]) != 0 {
			commits++
		}
	}
	return commits, nil
}
