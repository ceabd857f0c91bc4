package sqlstore

import "sync/atomic"

// Follower is who follows a Log by Follow: a Store. Only Hint must be there.
type Follower struct {
	// Hint is called whenever another process may have appended: with the newest revision if the log
	// knows it, else with 0.
	Hint func(head int64)
	// Known returns the newest revision that the follower has. What is not above it is no news.
	Known func() int64
	// Told has a token when another process said that it has appended. It is the caller who makes the
	// follower look; the log needs to know because more may come soon.
	Told <-chan struct{}
	// AllTell tells whether all other processes say when they append after a while without: a log that
	// asks the database again and again may do so seldom then.
	AllTell func() bool
	// Polls is called with whether the log asks the database again and again, because that does not
	// say by itself when there is news.
	Polls func(polls bool)
}

// others is what the Store knows of other processes on its database beside what the database says.
type others struct {
	told    chan struct{} // has a token when one said that it has appended
	wrote   chan struct{} // has a token when this process has appended
	allTell atomic.Bool
	polls   atomic.Bool
}

func (o *others) init() {
	o.told = make(chan struct{}, 1)
	o.wrote = make(chan struct{}, 1)
}

func (s *Store) runFollow() {
	s.log.Follow(s.ctx, Follower{
		Hint: s.tail.lookFor, Known: s.Revision,
		Told: s.others.told, AllTell: s.others.allTell.Load, Polls: s.others.polls.Store,
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
		s.tail.lookFor(0) // what is there counts, and not what somebody says
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
