package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// History returns the changes that readers see and that q asks for. What was compacted is not there, which is
// no error. Unlike other reads it asks the database.
func (s *Store) History(ctx context.Context, q changelog.HistoryQuery) ([]changelog.HistoryRow, error) {
	if err := s.objects.refused; err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	if q.Through = min(q.Through, s.Revision()); q.Through <= q.After || q.Limit <= 0 {
		return nil, nil
	}
	return s.log.History(ctx, q)
}

// Brought returns the revision up to which objects were copied or taken in from another place: rows up to
// it that create an object name who has written that last, and not who created it. 0: none were.
func (s *Store) Brought() int64 { return s.brought }

// OldEntries returns what readers saw of rows of History or Past; of a tombstone, the last that they saw. An entry
// may be unreadable. ErrCompacted if one of them is not kept any more.
func (s *Store) OldEntries(ctx context.Context, rows []*changelog.HistoryRow) ([]*Entry, error) {
	entries := make([]*Entry, len(rows))
	var ids []int64
	for i, r := range rows {
		if e := s.values.readableNow(r.Key); e != nil && e.Revision == r.Revision {
			entries[i] = e
			continue
		}
		ids = append(ids, r.Revision)
	}
	if ids == nil {
		return entries, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.QueryTimeout)
	defer cancel()
	values, err := s.log.OldValues(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read old values: %w", err)
	}
	for i, r := range rows {
		if entries[i] != nil {
			continue
		}
		value, ok := values[r.Revision]
		if !ok {
			return nil, fmt.Errorf("read the value of %s at %d: %w", r.Key, r.Revision, changelog.ErrCompacted)
		}
		delete(values, r.Revision)
		row := r.Row
		row.Value = value
		entries[i] = s.values.open(ctx, &row)
	}
	return entries, nil
}

// Incarnation returns the revisions of the current entry of key: of its creation and of its last change; 0
// if it is absent. It reads no value.
func (s *Store) Incarnation(key string) (created, changed int64) {
	if e := s.state.newest(key); e != nil {
		return e.CreateRevision, e.Revision
	}
	return 0, 0
}

// Reach is how far back old versions of some objects are there, and why no further.
type Reach struct {
	Revision int64         // from which on all changes are there
	Since    int64         // its time in Unix milliseconds; 0: all changes since the log was made are there
	History  time.Duration // how long all old versions stay
	Kept     bool          // those of these objects stay longer, by Rule
	Rule     changelog.Rule
	Rules    []changelog.Rule // all
	Most     int64            // bytes of all old versions that stay longer; 0: any number
}

// Reach returns that of the objects of the resource with a prefix.
func (s *Store) Reach(ctx context.Context, prefix string) (r Reach, err error) {
	r = Reach{Revision: s.Floor(), History: s.o.History, Rules: s.o.Retention.Rules(), Most: s.stats.keptBound.Load()}
	if r.Rule, r.Kept = s.o.Retention.Of(prefix); r.Kept {
		from, to := changelog.RangeOf(prefix)
		if r.Revision, err = s.log.KnownFrom(ctx, from, to); err != nil {
			return r, err
		}
	}
	if r.Revision > 0 {
		_, r.Since, err = s.log.Time(ctx, r.Revision)
	}
	return r, err
}

// RevisionAt returns the newest revision that was committed at or before a moment (Unix milliseconds),
// as far as the log still knows: 0 if nothing that it has is that old.
func (s *Store) RevisionAt(ctx context.Context, moment int64) (int64, error) {
	return s.newestIn(ctx, 0, s.Revision(), moment)
}
