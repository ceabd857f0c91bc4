package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"golang.org/x/sync/errgroup"
)

const (
	rewindPage = 1000 // changes read at once
	rewindLoad = 512  // commits at once
	rewindTry  = 10   // times, while others write
)

// Pin is a state that Rewind can go back to. While there is one, this process compacts nothing above it.
type Pin struct {
	s        *Store
	revision int64 // that has the state; guarded by compactor.mu
}

// Pin pins the current state until Release is called. There may be several.
func (s *Store) Pin(ctx context.Context) (*Pin, error) {
	revision, err := s.heads.sync(ctx)
	if err != nil {
		return nil, fmt.Errorf("pin the state: %w", err)
	}
	p := &Pin{s, revision}
	s.compact.pin(p)
	return p, nil
}

// Release gives the pin up. Calls after the first do nothing.
func (p *Pin) Release() { p.s.compact.release(p) }

// Rewind gives all objects the state of p again, in new revisions: watchers see what changes. It
// returns the number of objects changed. Objects that others change meanwhile are changed again, a
// few times; it fails only if there is one that never had its state. The cost is that of what has
// changed since the pin, or since the last Rewind to it.
func (s *Store) Rewind(ctx context.Context, p *Pin) (changed int, err error) {
	if err := s.objects.refused; err != nil {
		return 0, fmt.Errorf("rewind: %w", err)
	}
	revision := s.compact.at(p)
	rewound := make(map[string]bool)
	missed := 0 // changes that others were always faster than
	for range rewindTry {
		changes, through, err := p.differences(ctx, revision)
		if err == nil && len(changes) == 0 {
			s.compact.move(p, through)
			return changed, nil
		}
		n := 0
		if err == nil {
			n, err = p.commitAll(ctx, changes, rewound)
		}
		changed += n
		if err == nil && n == len(changes) {
			// If nothing else was written since, there is nothing to look at again.
			var now int64
			if now, err = s.heads.sync(ctx); err == nil && now == through+int64(n) {
				s.compact.move(p, now)
				return changed, nil
			}
		}
		if err != nil {
			return changed, fmt.Errorf("rewind to revision %d: %w", revision, err)
		}
		missed = 0
		for _, c := range changes {
			if !rewound[c.Key] {
				missed++
			}
		}
	}
	if missed == 0 {
		return changed, nil
	}
	return changed, fmt.Errorf("rewind to revision %d: somebody changes %d objects all the time", revision, missed)
}

// differences returns the changes that lead from the current state, which is that at through, back to
// that at revision.
func (p *Pin) differences(ctx context.Context, revision int64) (changes []Change, through int64, err error) {
	if through, err = p.s.heads.sync(ctx); err != nil {
		return nil, 0, err
	}
	seen := make(map[string]bool)
	from, to := p.s.o.Format.Range()
	for after := revision; ; {
		steps, err := p.s.log.Steps(ctx, from, to, after, through, rewindPage)
		if err != nil {
			return nil, 0, err
		}
		for i := range steps {
			step := &steps[i]
			if seen[step.Key] {
				continue
			}
			seen[step.Key] = true
			c, differs, err := p.undo(ctx, step)
			if err != nil {
				return nil, 0, err
			}
			if differs {
				changes = append(changes, c)
			}
		}
		if len(steps) < rewindPage {
			return changes, through, nil
		}
		after = steps[len(steps)-1].Revision
	}
}

// undo returns the change that brings back what was there before a step, if something else is there now.
func (p *Pin) undo(ctx context.Context, step *changelog.Step) (c Change, differs bool, err error) {
	now := p.s.Get(step.Key)
	if now != nil && now.Unreadable() != nil {
		return c, false, now.Unreadable()
	}
	if step.Prev == nil {
		if now == nil {
			return c, false, nil
		}
		return now.Ends(p.s.values.hide(now)), true, nil
	}
	before := p.s.values.open(ctx, step.Prev)
	if reason := before.Unreadable(); reason != nil {
		return c, false, reason
	}
	c = Change{Key: step.Key, Value: p.s.values.hide(before)}
	if now != nil {
		c.Expect = now.Revision
		differs = !bytes.Equal(c.Value, p.s.values.hide(now))
	}
	return c, differs || now == nil, nil
}

// commitAll commits changes, as far as nobody else is faster. It returns how many, and notes their keys.
func (p *Pin) commitAll(ctx context.Context, changes []Change, keys map[string]bool) (n int, err error) {
	var group errgroup.Group
	group.SetLimit(rewindLoad)
	committed := make(chan string, len(changes))
	for _, c := range changes {
		group.Go(func() error {
			_, err := p.s.Commit(ctx, c)
			if err == nil {
				committed <- c.Key
			}
			if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
				return nil
			}
			return err
		})
	}
	err = group.Wait()
	close(committed)
	for key := range committed {
		keys[key] = true
		n++
	}
	return n, err
}
