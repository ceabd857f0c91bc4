package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Past returns at most limit objects with from <= key < to, in key order, that were in force at a
// revision: also below the floor, as far as Options.Retention has kept what is needed. ErrCompacted if that
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
	if err := s.objects.checkKey(key); err != nil {
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
	if err := s.state.wait(ctx, head.Revision); err != nil {
		return removed, fmt.Errorf("read what led to the floor after forgetting: %w", err)
	}
	s.state.raiseFloor(head.Floor)
	return removed, nil
}

// retentionNow returns what is kept of rows that are compacted now. On a full disk that is nothing: to keep
// a version frees no space.
func (c *compactor) retentionNow() *changelog.Retention {
	if c.o.Retention != nil && errors.Is(c.log.Condition(), changelog.ErrFull) {
		return changelog.NewRetention()
	}
	return c.o.Retention
}

// fit is what becomes of old versions that were kept under other rules.
type fit struct {
	after   int64 // versions up to here have the expiry of the rules
	done    bool  // all have
	emptied bool  // there are none, and none will be kept
}

// markRetention is the mark with the fingerprint of the rules by which past has been fitted.
const markRetention = "keep"

const (
	trimStep  = 500 // versions deleted in one transaction
	refitStep = 500 // versions looked at in one transaction
)

// trimPast deletes old versions that are kept no longer, after those kept under other rules have got
// their new expiry.
func (c *compactor) trimPast() error {
	if c.fit.emptied {
		return nil
	}
	if err := c.refitPast(); err != nil || !c.fit.done {
		return err
	}
	return c.deletePast(func(now time.Time) (done changelog.Compacted, more bool, err error) {
		done, err = c.log.Trim(c.ctx, c.o.Retention, now.UnixMilli(), trimStep)
		if more = !done.Busy && done.Deleted >= trimStep; err == nil && !more {
			c.fit.emptied = c.o.Retention == nil && !done.Busy
		}
		return done, more, err
	})
}

// deletePast calls a step that deletes old versions for as long as there are more, and gives their space back.
func (c *compactor) deletePast(step func(now time.Time) (done changelog.Compacted, more bool, err error)) error {
	deleted := int64(0)
	for {
		begin := time.Now()
		done, more, err := step(begin)
		if err != nil {
			return err
		}
		deleted += done.Deleted
		c.stats.trimmed.Add(done.Deleted)
		if !more {
			return c.reclaim(deleted)
		}
		if c.pause(time.Since(begin)) {
			return changelog.ErrClosed
		}
	}
}

// refitPast gives old versions the expiry of the rules if that was not done before.
func (c *compactor) refitPast() error {
	f := &c.fit
	for !f.done {
		begin := time.Now()
		same, err := c.sameRules()
		if err != nil || same {
			f.done = same
			return err
		}
		if c.o.Retention != nil {
			done, err := c.log.Refit(c.ctx, c.o.Retention, f.after, refitStep)
			if err != nil || done.Busy {
				return err
			}
			c.stats.trimmed.Add(done.Deleted)
			if done.Swept > f.after {
				f.after = done.Swept
				if c.pause(time.Since(begin)) {
					return changelog.ErrClosed
				}
				continue
			}
		}
		if err := c.log.SetMarks(c.ctx, map[string]string{markRetention: c.o.Retention.Fingerprint()}); err != nil {
			return fmt.Errorf("note the rules of what is kept: %w", err)
		}
		f.done = true
	}
	return nil
}

// sameRules says whether past has been fitted to the rules.
func (c *compactor) sameRules() (bool, error) {
	marks, err := c.log.Marks(c.ctx)
	if err != nil {
		return false, fmt.Errorf("read the rules of what is kept: %w", err)
	}
	return marks[markRetention] == c.o.Retention.Fingerprint(), nil
}
