package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/deciding"
	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/server/highwater"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// database is what a server keeps its state in.
type database struct {
	store     *sqlstore.Store
	shared    bool // other servers may serve the same database
	made      bool // this start has made the database
	highWater *highwater.Mark
}

// openDatabase opens the database, if it is the one that clients of this server know.
// authority is the fingerprint of the one that this server has.
func openDatabase(ctx context.Context, c *Config, values sqlstore.Transformer, authority string, start *progress) (d database, err error) {
	if d.highWater, err = highwater.Read(revisionFile(c.DataDir), c.DSN); err != nil {
		return d, err
	}
	// Asked before anything is made: a refusal leaves no empty database behind.
	mustExist := d.highWater.Known() && !c.NewDatabase
	log, err := connect(ctx, c, mustExist, start)
	if mustExist && errors.Is(err, changelog.ErrNoLog) {
		return d, configError("%w", d.highWater.Refuse(fmt.Sprintf("there is no plinth database (%v)", err)))
	}
	if err != nil {
		return d, fmt.Errorf("open database: %w", err)
	}
	if log.Made() && !dialects.InMemory(c.DSN) {
		c.Log.Info("made a new database", "database", dialects.Describe(c.DSN))
	}
	if why := dialects.Insecure(c.DSN); why != "" {
		c.Log.Warn(why, "database", dialects.Describe(c.DSN))
	}
	d.shared, d.made = !log.Exclusive(), log.Made()
	err = d.checkLog(ctx, c, log)
	if err == nil && d.shared && c.DataDir != "" {
		err = shareAuthority(ctx, c, log, authority)
	}
	if err != nil {
		return d, errors.Join(err, log.Close())
	}
	d.store, err = object.Open(ctx, log, boundTo(c.Memory, sqlstore.Options{History: c.History, Retention: c.Keep, RetentionBytes: c.KeepSize, Transformer: values, Author: rest.Own, Check: deciding.Check, Log: c.Log}))
	if err != nil {
		return d, errors.Join(fmt.Errorf("open database: %w", err), log.Close())
	}
	return d, nil
}

// revisionFile is where the highest revision served is kept. A server without a directory has none.
func revisionFile(dataDir string) string {
	if dataDir == "" {
		return ""
	}
	return filepath.Join(dataDir, "revision")
}

// checkLog refuses a log that is not to be served. It asks a few short questions, which a
// database that hangs does not answer.
func (d *database) checkLog(ctx context.Context, c *Config, log changelog.Log) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.DatabaseTimeout, time.Minute))
	defer cancel()
	err := changelog.HalfCopied(ctx, log)
	if errors.Is(err, changelog.ErrHalfCopied) {
		return configError("%s: %w; copy or import again, which goes on with it, or write another DSN", dialects.Describe(c.DSN), err)
	}
	if err == nil {
		err = changelog.CheckMoved(ctx, log)
	}
	if errors.Is(err, changelog.ErrMoved) {
		return configError("%[1]s: %[2]w; serve that one with --dsn; or, if its copy was not finished, copy again; or run plinth copy --take-back --from %[1]s to serve this one without what was written there", dialects.Describe(c.DSN), err)
	}
	if err == nil {
		err = d.highWater.Check(ctx, log, c.NewDatabase, c.Log)
	}
	if errors.Is(err, highwater.ErrOther) {
		return configError("%w", err)
	}
	if err != nil {
		return fmt.Errorf("compare the database with what was served: %w", err)
	}
	return err
}

// connect opens the database. It waits for a database that cannot be reached yet.
func connect(ctx context.Context, c *Config, mustExist bool, start *progress) (changelog.Log, error) {
	log, err := dialects.OpenWithin(ctx, c.DSN, dialects.Options{Log: c.Log, MustExist: mustExist}, c.DatabaseTimeout, start.waits)
	if errors.Is(err, dialects.ErrGaveUp) {
		err = fielderr.Errorf("%w, which %v sets: check that %s runs, takes connections from here and is the right one", err, field("DatabaseTimeout"), dialects.Describe(c.DSN))
	}
	return log, err
}

// objects counts the objects that clients see.
func (d *database) objects() (n int) {
	for resource, count := range d.store.Stats().Entries {
		if group, _ := object.SplitPrefix(resource); group != object.InternalGroup {
			n += count
		}
	}
	return n
}

// health says in words for everybody why the database cannot be used; nil if it can be.
func (d *database) health() error {
	err := d.store.Healthy()
	if err != nil {
		return errors.New(d.reason(err))
	}
	return nil
}

// reason is an error in words for everybody. Errors of a file have no secrets.
func (d *database) reason(err error) string {
	if d.shared || errors.Is(err, changelog.ErrMoved) {
		return storageReason(err)
	}
	return err.Error()
}

// close does nothing if the database was never opened.
func (d *database) close() error {
	if d.store == nil {
		return nil
	}
	if err := d.store.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// storageReason says why the database cannot be used without saying where it is or as
// whom it is used; the log has that.
func storageReason(err error) string {
	if errors.Is(err, changelog.ErrMoved) {
		return "this database has moved; the log says where to"
	}
	reason := "database error"
	if errors.Is(err, changelog.ErrUnavailable) {
		reason = "database unavailable"
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return reason + ": " + errno.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return reason + ": timeout"
	}
	return reason + "; the log says more"
}
