package poll

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// polled runs a Poller in a bubble of synctest, whose time costs none, and gives f the number of questions so
// far, and the head and what is known of it to change.
func polled(t *testing.T, allTell bool, f func(asked func() int64, head, known *atomic.Int64, told chan<- struct{})) {
	synctest.Test(t, func(t *testing.T) {
		var asked, head, known atomic.Int64
		told := make(chan struct{}, 1)
		p := Poller{
			Follower: changelog.Follower{Hint: func(int64) {}, Known: known.Load, Told: told, AllTell: func() bool { return allTell }},
			Head: func(context.Context) (int64, error) {
				asked.Add(1)
				return head.Load(), nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		time.Sleep(time.Minute)
		f(asked.Load, &head, &known, told)
		cancel()
		<-done
	})
}

// in counts the questions of a time.
func in(d time.Duration, asked func() int64) int64 {
	before := asked()
	time.Sleep(d)
	return asked() - before
}

func TestIdle(t *testing.T) {
	for allTell, want := range map[bool]int64{false: 200, true: 60} {
		polled(t, allTell, func(asked func() int64, _, _ *atomic.Int64, _ chan<- struct{}) {
			if n := in(time.Minute, asked); n < want-1 || n > want+1 {
				t.Errorf("others tell is %v: %d questions in an idle minute, want %d", allTell, n, want)
			}
		})
	}
}

// TestTold asks at once when another process says that it has written, and often for a while.
func TestTold(t *testing.T) {
	polled(t, true, func(asked func() int64, _, _ *atomic.Int64, told chan<- struct{}) {
		told <- struct{}{}
		if n := in(200*time.Millisecond, asked); n < 4 {
			t.Errorf("%d questions in the next fifth of a second", n)
		}
		if n := in(10*time.Second, asked); n > 11 {
			t.Errorf("%d questions in the ten seconds after that", n)
		}
	})
}

// TestOwnWrites goes on to ask seldom while nobody but this process writes, if others would say so.
func TestOwnWrites(t *testing.T) {
	for _, c := range []struct {
		allTell, own bool
		least, most  int64
	}{
		{true, true, 59, 61},
		{true, false, 120, 300},
		{false, true, 200, 1000},
	} {
		polled(t, c.allTell, func(asked func() int64, head, known *atomic.Int64, _ chan<- struct{}) {
			before := asked()
			for range 30 {
				head.Add(1)
				if c.own {
					known.Add(1)
				}
				time.Sleep(2 * time.Second)
			}
			if n := asked() - before; n < c.least || n > c.most {
				t.Errorf("%+v: %d questions in a minute of 30 writes", c, n)
			}
		})
	}
}
