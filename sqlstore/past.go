package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Past returns at most limit objects with from <= key < to, in key order, that were in force at a
// revision: also below the floor, as far as Options.Keep has kept what is needed. ErrCompacted if that
// is not known exactly (see Log.Past), ErrFuture if the Store has not reached the revision: Wait first.
// OldEntries has what they were.
func (s *Store) Past(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.HistoryRow, error) {
	if revision > s.Revision() {
		return nil, fmt.Errorf("read the past at %d: %w", revision, ErrFuture)
	}
	rows, err := s.log.Past(ctx, from, to, revision, limit)
	if err != nil {
		return nil, fmt.Errorf("at revision %d: %w", revision, err)
	}
	return rows, nil
}

// Forget deletes all old versions of an object for good, and of one that is deleted its last state,
// too. It returns how many. Watches and lists of older revisions, of all resources, get ErrCompacted.
func (s *Store) Forget(ctx context.Context, key string) (removed int64, err error) {
	if err := s.checkKey(key); err != nil {
		return 0, err
	}
	removed, err = s.log.Forget(ctx, key)
	if removed == 0 || err != nil {
		return removed, err
	}
	head, err := s.boundedHead()
	if err != nil {
		return removed, fmt.Errorf("read the floor after forgetting: %w", err)
	}
	if err := s.Wait(ctx, head.Revision); err != nil {
		return removed, fmt.Errorf("read what led to the floor after forgetting: %w", err)
	}
	s.raiseFloor(head.Floor)
	return removed, nil
}

// keepNow returns what is kept of rows that are compacted now. On a full disk that is nothing: to keep
// a version frees no space.
func (s *Store) keepNow() *changelog.Keep {
	if s.o.Keep != nil && errors.Is(s.log.Condition(), changelog.ErrFull) {
		return changelog.NewKeep()
	}
	return s.o.Keep
}

// fit is what becomes of old versions that were kept under other rules.
type fit struct {
	after   int64 // versions up to here have the expiry of the rules
	done    bool  // all have
	emptied bool  // without rules: there are none
}

// markKeep is the mark with the fingerprint of the rules by which past has been fitted.
const markKeep = "keep"

const (
	trimStep  = 500 // versions deleted in one transaction
	refitStep = 500 // versions looked at in one transaction
)

// trimPast deletes old versions that are kept no longer, after those kept under other rules have got
// their new expiry.
func (s *Store) trimPast() error {
	if s.raw || s.compact.fit.emptied {
		return nil
	}
	if err := s.refitPast(); err != nil || !s.compact.fit.done {
		return err
	}
	deleted := int64(0)
	for {
		begin := time.Now()
		c, err := s.log.Trim(s.ctx, s.o.Keep, begin.UnixMilli(), trimStep)
		if err != nil {
			return err
		}
		deleted += c.Deleted
		s.stats.trimmed.Add(c.Deleted)
		if c.Busy || c.Deleted < trimStep {
			s.compact.fit.emptied = s.o.Keep == nil && !c.Busy
			return s.reclaim(deleted)
		}
		if s.pauseCompaction(time.Since(begin)) {
			return changelog.ErrClosed
		}
	}
}

// refitPast gives old versions the expiry of the rules if that was not done before.
func (s *Store) refitPast() error {
	f := &s.compact.fit
	for !f.done {
		begin := time.Now()
		same, err := s.sameRules()
		if err != nil || same {
			f.done = same
			return err
		}
		if s.o.Keep != nil {
			c, err := s.log.Refit(s.ctx, s.o.Keep, f.after, refitStep)
			if err != nil || c.Busy {
				return err
			}
			s.stats.trimmed.Add(c.Deleted)
			if c.Swept > f.after {
				f.after = c.Swept
				if s.pauseCompaction(time.Since(begin)) {
					return changelog.ErrClosed
				}
				continue
			}
		}
		if err := s.log.SetMarks(s.ctx, map[string]string{markKeep: s.o.Keep.Fingerprint()}); err != nil {
			return fmt.Errorf("note the rules of what is kept: %w", err)
		}
		f.done = true
	}
	return nil
}

// sameRules says whether past has been fitted to the rules.
func (s *Store) sameRules() (bool, error) {
	marks, err := s.log.Marks(s.ctx)
	if err != nil {
		return false, fmt.Errorf("read the rules of what is kept: %w", err)
	}
	return marks[markKeep] == s.o.Keep.Fingerprint(), nil
}
