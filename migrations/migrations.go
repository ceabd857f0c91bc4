// Package migrations holds the schema of each dialect as numbered SQL and brings a
// database to the newest version. The dialects call it when they open a database; it knows
// nothing of what the tables are for.
//
// Every migration can be run twice (IF NOT EXISTS and the like): one that was cut off
// half-way is simply run again.
package migrations

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

// ErrLocked says that another session holds the lock that orders migrations: a plinth that
// migrates, or one that hangs.
var ErrLocked = errors.New("another session holds the lock on the schema's migrations")

// Up brings the database behind db to the newest version, and says whether it has made
// the first one, so that there was no schema before. Several processes may call it at
// once; db's own lock orders them, and is waited for at most for wait, then ErrLocked. The
// caller ends db's connection: the library may still wait for the lock on it.
func Up(d Dialect, db database.Driver, wait time.Duration) (made bool, err error) {
	version, dirty, err := db.Version()
	if err != nil {
		return false, fmt.Errorf("read schema version: %w", Plain(err))
	}
	if done, err := Check(d, version, dirty); done || err != nil {
		return false, err
	}
	err = run(d, db, wait)
	if errors.Is(err, migrate.ErrNoChange) {
		return false, nil // another process has done it meanwhile
	}
	if err != nil {
		return false, fmt.Errorf("migrate schema: %w", Plain(err))
	}
	return !Exists(version, dirty), nil
}

func run(d Dialect, db database.Driver, wait time.Duration) error {
	source, err := iofs.New(files, string(d))
	if err != nil {
		return err
	}
	defer source.Close()
	m, err := migrate.NewWithInstance("iofs", source, string(d), db)
	if err != nil {
		return err
	}
	m.LockTimeout = wait
	err = m.Up()
	if cut := (migrate.ErrDirty{}); errors.As(err, &cut) {
		// The process that ran it held the lock, and has ended without finishing.
		if err := m.Force(before(cut.Version)); err != nil {
			return err
		}
		err = m.Up()
	}
	return err
}

// before returns the version that a migration to version starts from.
func before(version int) int {
	if version <= 1 {
		return database.NilVersion
	}
	return version - 1
}

// Plain drops the statement that the library puts into its errors, which would make
// them many lines long, and makes what is inside visible to errors.As.
func Plain(err error) error {
	if errors.Is(err, migrate.ErrLockTimeout) || errors.Is(err, database.ErrLocked) {
		return ErrLocked
	}
	var e *database.Error
	if errors.As(err, &e) && e.OrigErr != nil {
		return e.OrigErr
	}
	var v database.Error
	if errors.As(err, &v) && v.OrigErr != nil {
		return v.OrigErr
	}
	return err
}
