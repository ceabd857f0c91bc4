package upstream

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// kineSource reads a table of kine.
type kineSource struct {
	dsn string
	// moving allows Each to show values of keys that are newer than Revision. Otherwise, Each reads in one
	// transaction, which blocks writers of a SQLite without WAL.
	moving   bool
	table    *kine.Table // the open transaction; nil: none
	revision int64
	again    bool // Changes must read the last rows again

	seen    []sighting // when newest revisions were first seen, in order
	settled int64      // no new row appears below this revision
}

// sighting is the time at which a revision was first seen.
type sighting struct {
	revision int64
	at       time.Time
}

// OpenKine returns the keys in the table of a kine, in the database at dsn, which has the form of plinth's
// DSNs. kine may be running. If changes are read, too, nothing is blocked for long.
func OpenKine(ctx context.Context, dsn string, changes bool) (LiveSource, error) {
	s := &kineSource{dsn: dsn, moving: changes}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *kineSource) Refresh(ctx context.Context) error {
	s.Close()
	table, extent, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.revision, s.again = extent.Revision, true
	if s.moving {
		return table.Close()
	}
	s.table = table
	return nil
}

func (s *kineSource) open(ctx context.Context) (*kine.Table, kine.Extent, error) {
	table, err := kine.Open(ctx, s.dsn)
	if err != nil {
		return nil, kine.Extent{}, fmt.Errorf("%s: %w", dialects.Describe(s.dsn), err)
	}
	extent, err := table.Extent(ctx)
	if err != nil {
		table.Close()
		return nil, extent, fmt.Errorf("%s: %w", dialects.Describe(s.dsn), err)
	}
	return table, extent, nil
}

func (s *kineSource) Newest(ctx context.Context) (int64, error) {
	table, extent, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	return extent.Revision, table.Close()
}

func (s *kineSource) Revision() int64 { return s.revision }

func (s *kineSource) Close() (err error) {
	if s.table != nil {
		err = s.table.Close()
		s.table = nil
	}
	return err
}

func (s *kineSource) Each(ctx context.Context, prefix string, f func([]Pair) error) error {
	out := pages{f: f}
	for after := int64(0); ; {
		rows, next, err := s.current(ctx, after)
		if err != nil {
			return fmt.Errorf("read kine's table: %w", err)
		}
		for _, r := range rows {
			if !strings.HasPrefix(r.Key, prefix) {
				continue
			}
			if err := out.add(Pair{r.Key, r.Value, r.Revision}); err != nil {
				return err
			}
		}
		if next == 0 {
			return out.flush()
		}
		after = next
	}
}

func (s *kineSource) current(ctx context.Context, after int64) ([]kine.Row, int64, error) {
	table := s.table
	if table == nil {
		var err error
		if table, _, err = s.open(ctx); err != nil {
			return nil, 0, err
		}
		defer table.Close()
	}
	return table.Current(ctx, after, pagePairs)
}

const (
	// lateRows is how many of the newest rows are read again, because rows may become visible in another
	// order than that of their revisions. kine keeps more rows than these.
	lateRows = 500
	// gapPatience is how long after a row another row with a lower revision may still appear. A running kine
	// waits one second, and then fills the gap.
	gapPatience = 3 * time.Second
)

// Changes reads in a new transaction each time, so that none stays open for long.
func (s *kineSource) Changes(ctx context.Context, prefix string, after int64) (Changes, error) {
	table, extent, err := s.open(ctx)
	if err != nil {
		return Changes{}, err
	}
	defer table.Close()
	if extent.Compacted > after {
		return Changes{}, ErrCompacted
	}
	if s.again {
		s.again = false
		after = max(extent.Compacted, after-lateRows)
	}
	rows, next, err := table.Page(ctx, after, pagePairs)
	if err != nil {
		return Changes{}, fmt.Errorf("read kine's table: %w", err)
	}
	got := Changes{Through: max(after, next)}
	if got.Through, err = s.beforeGap(ctx, table, extent.Revision, after, got.Through); err != nil {
		return Changes{}, fmt.Errorf("read kine's table: %w", err)
	}
	for _, r := range rows {
		if r.Revision <= got.Through && strings.HasPrefix(r.Key, prefix) {
			got.Events = append(got.Events, Event{Pair: Pair{r.Key, r.Value, r.Revision}, Deleted: r.Deleted})
		}
	}
	if got.Through == after {
		err = sleep.For(ctx, changesWait)
	}
	return got, err
}

// beforeGap returns through, or the last revision before a gap in which a row may still appear.
func (s *kineSource) beforeGap(ctx context.Context, table *kine.Table, newest, after, through int64) (int64, error) {
	if dialects.Scheme(s.dsn) == "sqlite" {
		return through, nil // it has one writer at a time
	}
	s.seen = append(s.seen, sighting{newest, time.Now()})
	for time.Since(s.seen[0].at) > gapPatience {
		s.settled, s.seen = s.seen[0].revision, s.seen[1:]
	}
	gap, err := table.Gap(ctx, max(after, s.settled), through)
	if err != nil || gap == 0 {
		return through, err
	}
	return gap - 1, nil
}
