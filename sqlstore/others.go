package sqlstore

import (
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// others is what the Store knows of other processes on its database beside what the database says.
type others struct {
	*shared
	state *state
	hints *hints

	told    chan struct{} // has a token when one said that it has appended
	wrote   chan struct{} // has a token when this process has appended
	allTell atomic.Bool
	polls   atomic.Bool
}

func (o *others) init() {
	o.told = make(chan struct{}, 1)
	o.wrote = make(chan struct{}, 1)
}

func (o *others) run() {
	o.log.Follow(o.ctx, changelog.Follower{
		Hint: o.hints.lookFor, Known: o.state.applied.Load,
		Told: o.told, AllTell: o.allTell.Load, Polls: o.polls.Store,
	})
}

// Polls tells whether the Store asks the database again and again what other processes have appended. Then
// it helps to tell it (Told).
func (s *Store) Polls() bool { return s.others.polls.Load() }

// Wrote has a token when this process has committed changes since the last token was taken.
func (s *Store) Wrote() <-chan struct{} { return s.others.wrote }

// Told makes the Store look for what another process says to have committed up to head.
func (s *Store) Told(head int64) {
	if head > s.Revision() {
		s.hints.lookFor(0) // what is there counts, and not what somebody says
		put(s.others.told)
	}
}

// AllTell says whether every other process that may write says so by Told, after a while in which it has
// not written. It is false at first.
func (s *Store) AllTell(all bool) { s.others.allTell.Store(all) }

// put puts a token into a channel that has place for one.
func put(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
