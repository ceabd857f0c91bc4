// Package poll watches the end of a log by asking for it again and again.
package poll

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	// Least is the pause between two questions while there is news.
	Least = 20 * time.Millisecond
	// Alone is the longest pause when nobody else says that there is news, and Calm when all who write
	// do: then it bounds how late news is if what they say gets lost.
	Alone = 300 * time.Millisecond
	Calm  = time.Second

	// brief is the pause after which there is no more news to be expected soon if it would be told: whoever
	// tells of it does not while changes follow each other at less (package server/peers).
	brief = 100 * time.Millisecond

	// timeout bounds one question. A database that hangs must not keep the poller waiting: the
	// next question goes over another connection.
	timeout = 5 * time.Second
)

// Poller asks for the head: soon again while there is news, ever more seldom while
// there is none.
type Poller struct {
	Follower changelog.Follower
	Head     func(ctx context.Context) (int64, error)
	// Most returns the longest pause. It is asked before each one. nil: Longest of the Follower.
	Most func() time.Duration
	// Notified tells whether the database says by itself that there is news; nil: it does not.
	Notified func() bool
	// Wake ends a pause early; may be nil.
	Wake <-chan struct{}
	// Found is told each head that was news; may be nil.
	Found func(head int64)
}

// Longest is the longest pause while nothing but the questions tells of news, unless other processes do.
func Longest(f changelog.Follower) time.Duration {
	if f.AllTell != nil && f.AllTell() {
		return Calm
	}
	return Alone
}

// Run polls until ctx ends. An error of Head counts as no news.
func (p *Poller) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	last, pause := int64(-1), Least
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Wake:
			pause = Least
		case <-p.Follower.Told:
			pause = Least // the follower itself looks at once
			timer.Reset(pause)
			continue
		case <-timer.C:
		}
		head, err := p.head(ctx)
		if err == nil && head != last {
			if p.isNews(head) {
				pause = Least
			}
			p.Follower.Hint(head)
			if p.Found != nil && last >= 0 {
				p.Found(head)
			}
			last = head
		}
		timer.Reset(pause)
		pause = p.longer(pause)
	}
}

// isNews tells whether a head that has changed is reason to ask often for a while. What this process has
// written itself or knows already is not, unless asking is the only way to hear of others.
func (p *Poller) isNews(head int64) bool {
	known := p.Follower.Known
	return !p.told() || known == nil || head > known()
}

// told tells whether somebody says that there is news.
func (p *Poller) told() bool {
	f := p.Follower
	return f.AllTell != nil && f.AllTell() || p.Notified != nil && p.Notified()
}

// longer returns the pause after one that has brought no news.
func (p *Poller) longer(pause time.Duration) time.Duration {
	if pause >= brief && p.told() {
		return p.most()
	}
	return min(pause*3/2, p.most())
}

func (p *Poller) most() time.Duration {
	if p.Most != nil {
		return p.Most()
	}
	return Longest(p.Follower)
}

func (p *Poller) head(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return p.Head(ctx)
}
