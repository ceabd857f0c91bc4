package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// writers are the numbers of concurrent writers to the store.
var writers = []int{1, 16, 64, 256}

// storage measures the bare driver and the store in turn, each on a database of its own.
type storage struct {
	floor     floor
	store     *sqlstore.Store
	inserted  int64   // rows of the floor
	revisions []int64 // of each key in the store, by its number
}

// storageRounds are the rates of each round.
type storageRounds struct {
	one, hundred figures.Series          // of the floor, by rows a commit
	store        map[int]*figures.Series // by writers
}

func (r *run) measureStorage(ctx context.Context, d *Database, dsn string) (err error) {
	s := &storage{revisions: make([]int64, keys)}
	below, err := measure.NewScratch(ctx, dsn, r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, below.Drop(context.WithoutCancel(ctx))) }()
	above, err := measure.NewScratch(ctx, dsn, r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, above.Drop(context.WithoutCancel(ctx))) }()
	if s.floor, err = openFloor(ctx, below.DSN); err != nil {
		return fmt.Errorf("open the bare driver: %w", err)
	}
	defer func() { err = errors.Join(err, s.floor.close(context.WithoutCancel(ctx))) }()
	if s.store, err = openStore(ctx, above.DSN); err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if d.Version, d.Settings, err = s.floor.describe(ctx); err != nil {
		return err
	}
	rounds, err := r.storageRounds(ctx, d, s)
	if err != nil {
		return err
	}
	rounds.report(d)
	return nil
}

func openStore(ctx context.Context, dsn string) (*sqlstore.Store, error) {
	log, err := dialects.Open(ctx, dsn, dialects.Options{})
	if err != nil {
		return nil, err
	}
	store, err := object.Open(ctx, log, sqlstore.Options{})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return store, nil
}

func (r *run) storageRounds(ctx context.Context, d *Database, s *storage) (*storageRounds, error) {
	rounds := &storageRounds{store: map[int]*figures.Series{}}
	for _, n := range writers {
		rounds.store[n] = &figures.Series{}
	}
	// The first round fills the caches and the table, and does not count.
	if _, err := s.writeLoad(ctx, 64, r.scale.round); err != nil {
		return nil, err
	}
	for i := range r.scale.rounds {
		r.progress.Say("%s: bare driver and store, round %d of %d", d.Name, i+1, r.scale.rounds)
		if err := rounds.add(ctx, s, r.scale.round); err != nil {
			return nil, err
		}
	}
	return rounds, nil
}

// add measures one round: each floor next to what is compared with it.
func (r *storageRounds) add(ctx context.Context, s *storage, d time.Duration) error {
	floor := func(rows int, into *figures.Series) error {
		l, err := floorLoad(ctx, s.floor, &s.inserted, rows, d)
		into.Add(l.Rate(), l.Samples...)
		return err
	}
	store := func(writers int) error {
		l, err := s.writeLoad(ctx, writers, d)
		r.store[writers].Add(l.Rate(), l.Samples...)
		return err
	}
	return errors.Join(
		floor(1, &r.one),
		store(1),
		store(16),
		store(256),
		floor(100, &r.hundred),
		store(64),
	)
}

// writeLoad has writers put new versions of objects into the store. Each writer has keys of its
// own, so no expectation ever fails.
func (s *storage) writeLoad(ctx context.Context, writers int, d time.Duration) (measure.Load, error) {
	turns := make([]int64, writers)
	return measure.ClosedLoop(ctx, writers, d, func(ctx context.Context, w int) error {
		turns[w]++
		i := (int64(w) + turns[w]*int64(writers)) % (keys - keys%int64(writers))
		e, err := s.store.Commit(ctx, sqlstore.Change{
			Key: keyOf(i), Expect: s.revisions[i], Value: valueOf(i),
		})
		if err == nil {
			s.revisions[i] = e.Revision
		}
		return err
	})
}

func (r *storageRounds) report(d *Database) {
	d.add(Figure{What: "bare driver, 1 row a commit", Value: r.one.Median(), Unit: "rows/s", Latency: r.one.Latency()})
	d.add(Figure{What: "bare driver, 100 rows a commit", Value: r.hundred.Median(), Unit: "rows/s", Latency: r.hundred.Latency()})
	for _, n := range writers {
		s, what := r.store[n], fmt.Sprintf("store, %d writers", n)
		f := Figure{What: what, Value: s.Median(), Latency: s.Latency()}
		switch n {
		case 1:
			f = compared("store, 1 writer", s, &r.one, "1-row floor")
			f.Target = figures.AtLeast(0.6)
		case 64:
			f = compared(what, s, &r.hundred, "100-row floor")
			f.Target = figures.AtLeast(0.4)
		}
		f.Unit, f.Writers = "rows/s", n
		d.add(f)
	}
}
