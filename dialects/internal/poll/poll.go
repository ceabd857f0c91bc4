// Package poll watches the end of a log by asking for it again and again.
package poll

import (
	"context"
	"time"
)

// timeout bounds one question. A database that hangs must not keep the poller waiting: the
// next question goes over another connection.
const timeout = 5 * time.Second

// Poller asks for the head: soon again while there is news, ever more seldom while
// there is none.
type Poller struct {
	Head  func(ctx context.Context) (int64, error)
	Hint  func(head int64)
	Least time.Duration // between two questions while there is news
	// Most returns the longest pause. It is asked before each one.
	Most func() time.Duration
	// Wake ends a pause early; may be nil.
	Wake <-chan struct{}
	// Found is told each head that was news; may be nil.
	Found func(head int64)
}

// Run polls until ctx ends. An error of Head counts as no news.
func (p *Poller) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	last, pause := int64(-1), p.Least
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Wake:
			pause = p.Least
		case <-timer.C:
		}
		head, err := p.head(ctx)
		if err == nil && head != last {
			p.Hint(head)
			if p.Found != nil && last >= 0 {
				p.Found(head)
			}
			last, pause = head, p.Least
		}
		timer.Reset(pause)
		pause = min(pause*3/2, p.Most())
	}
}

func (p *Poller) head(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return p.Head(ctx)
}
