package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/server/highwater"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// etcdDatabase is the database of an etcd's keys.
type etcdDatabase struct {
	dsn   string
	log   changelog.Log
	store *sqlstore.Store // owns log
	mark  *highwater.Mark
}

const (
	// etcdWindow is what recent events may take in memory. Watches that are further behind read the
	// database, and kube-apiserver's never are.
	etcdWindow = 4 << 20
	// etcdSnapshots is how many lists can be read in pages at once without the database's help: to an
	// etcd all kinds of objects are one resource.
	etcdSnapshots = 64
)

// openDatabase opens the database, if it is one that plinth serves etcd's keys from, or a new one.
func (o *etcdOptions) openDatabase(ctx context.Context) (d etcdDatabase, err error) {
	if d.dsn, err = o.findDSN(); err != nil {
		return d, err
	}
	if err := refuseKine(ctx, d.dsn); err != nil {
		return d, err
	}
	if d.mark, err = highwater.Read(filepath.Join(o.dataDir, "etcd-revision"), d.dsn); err != nil {
		return d, err
	}
	mustExist := d.mark.Known() && !o.newDatabase // so that a refusal leaves no empty database behind
	d.log, err = o.connect(ctx, d.dsn, mustExist)
	if mustExist && errors.Is(err, changelog.ErrNoLog) {
		return d, usagef("%v", d.mark.Refuse(fmt.Sprintf("there is no plinth database (%v)", err)))
	}
	if err != nil {
		return d, fmt.Errorf("open database: %w", aboutKind(err))
	}
	if d.log.Made() {
		o.logger.Info("made a new database", "database", dialects.Describe(d.dsn))
	}
	if why := dialects.Insecure(d.dsn); why != "" {
		o.logger.Warn(why, "database", dialects.Describe(d.dsn))
	}
	err = changelog.HalfCopied(ctx, d.log)
	if errors.Is(err, changelog.ErrHalfCopied) {
		err = usagef("%s: %v; %s, then import again, or write another DSN", dialects.Describe(d.dsn), err, emptying(d.dsn))
	}
	if err == nil {
		err = d.refuseNothing(ctx)
	}
	if err == nil {
		err = d.mark.Check(ctx, d.log, o.newDatabase, o.logger)
	}
	if errors.Is(err, highwater.ErrOther) {
		err = usagef("%v", err)
	}
	if err == nil {
		d.store, err = sqlstore.Open(ctx, d.log, sqlstore.Options{
			CacheBytes: int(o.cacheBytes), WindowBytes: etcdWindow, Snapshots: etcdSnapshots,
			Log: o.logger,
		})
	}
	if err != nil {
		return d, errors.Join(err, d.log.Close())
	}
	o.remember(d)
	return d, nil
}

// remember writes what is served into the data directory, which a database on a server has not made.
// Such a server goes on without one.
func (o *etcdOptions) remember(d etcdDatabase) {
	if dialects.InMemory(d.dsn) {
		return
	}
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		o.logger.Warn("there is no data directory, so nothing will notice if the database is restored from an older backup; give --data-dir", "err", err)
		return
	}
	d.mark.Remember(d.store.Revision(), o.logger)
}

// aboutKind says what to write instead of a database that plinth serve has.
func aboutKind(err error) error {
	if errors.Is(err, changelog.ErrKind) {
		return fmt.Errorf("%w; --dsn: write the DSN of another database", err)
	}
	return err
}

// findDSN returns the DSN, and makes the data directory if the database is there.
func (o *etcdOptions) findDSN() (string, error) {
	if o.dsn != "" {
		return o.dsn, nil
	}
	dir, err := filepath.Abs(o.dataDir)
	if err != nil {
		return "", err
	}
	if strings.Contains(dir, "?") {
		return "", usagef("--data-dir %s: write a path without a question mark", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err == nil {
		return "", usagef("--data-dir %s: it has the data of another etcd, which plinth cannot read; write another directory", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("--data-dir: %w; make it a directory that user id %d may read and write, or write another one", err, os.Geteuid())
	}
	dsn := "sqlite://" + filepath.Join(dir, o.defaultName)
	if o.unsafe {
		dsn += "?durability=off"
	}
	return dsn, nil
}

// kinePatience bounds the look for a table of kine's.
const kinePatience = 10 * time.Second

// refuseKine keeps an empty key space from being served to those who have changed from kine to plinth and
// expect their keys. A database that plinth has served before, or that is away, is not looked at.
func refuseKine(ctx context.Context, dsn string) error {
	if _, err := dialects.Inspect(ctx, dsn, dialects.Options{Wait: kinePatience}); !errors.Is(err, changelog.ErrNoLog) {
		return nil
	}
	return refuseBesideKine(ctx, dsn)
}

// refuseNothing is refuseKine for plinth's tables without a row, which an import leaves that was killed
// as soon as it had made them.
func (d etcdDatabase) refuseNothing(ctx context.Context) error {
	head, err := d.log.Head(ctx)
	if err != nil || head.Revision > 0 {
		return err
	}
	return refuseBesideKine(ctx, d.dsn)
}

// refuseBesideKine returns an error if the database has keys of kine.
func refuseBesideKine(ctx context.Context, dsn string) error {
	if there, err := kine.There(ctx, dsn, kinePatience); err != nil || !there {
		return nil // if there is something wrong with the database, opening it tells
	}
	return usagef("%s has the keys of kine, which were not imported: run plinth etcd import --from-kine with this DSN, and another one as --dsn", dialects.Describe(dsn))
}

// connect opens the log. It waits for a database that cannot be reached yet.
func (o *etcdOptions) connect(ctx context.Context, dsn string, mustExist bool) (changelog.Log, error) {
	d := dialects.Options{Log: o.logger, Kind: changelog.KindEtcd, MustExist: mustExist}
	log, err := dialects.OpenWithin(ctx, dsn, d, o.databaseTimeout, func(err error, end time.Time) {
		o.logger.Log(ctx, slog.LevelWarn, "the database cannot be used yet; it is tried again", "err", err, "until", end.Format(time.TimeOnly))
	})
	if errors.Is(err, dialects.ErrGaveUp) {
		err = fmt.Errorf("%w, which --database-timeout sets: check that %s runs, takes connections from here and is the right one", err, dialects.Describe(dsn))
	}
	return log, err
}
