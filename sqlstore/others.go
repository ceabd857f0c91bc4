package sqlstore

import (
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Others is what a Store and the other processes on its database tell each other beside what the database says.
type Others struct {
	*shared
	state *state
	hints *hints

	told    chan struct{} // has a token when one said that it has appended
	wrote   chan struct{} // has a token when this process has appended
	allTell atomic.Bool
	polls   atomic.Bool
}

func (o *Others) init() {
	o.told = make(chan struct{}, 1)
	o.wrote = make(chan struct{}, 1)
}

func (o *Others) run() {
	o.log.Follow(o.ctx, changelog.Follower{
		Hint: o.hints.lookFor, Known: o.state.applied.Load,
		Told: o.told, AllTell: o.allTell.Load, Polls: o.polls.Store,
	})
}

// Polls tells whether the Store asks the database again and again what other processes have appended. Then
// it helps to tell it (Told).
func (o *Others) Polls() bool { return o.polls.Load() }

// Wrote has a token when this process has committed changes since the last token was taken.
func (o *Others) Wrote() <-chan struct{} { return o.wrote }

// Told makes the Store look for what another process says to have committed up to head.
func (o *Others) Told(head int64) {
	if head > o.state.applied.Load() {
		o.hints.lookFor(0) // what is there counts, and not what somebody says
		put(o.told)
	}
}

// AllTell says whether every other process that may write says so by Told, after a while in which it has
// not written. It is false at first.
func (o *Others) AllTell(all bool) { o.allTell.Store(all) }

// put puts a token into a channel that has place for one.
func put(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
