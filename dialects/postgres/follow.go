package postgres

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/internal/poll"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	pollSafety = 5 * time.Second  // while notifications are known to arrive
	proofTime  = 15 * time.Second // how long a notification to oneself may take
	dialPause  = time.Second
)

// channel is the log's own: several logs may live in schemas of one database, where
// channels are shared.
func (l *database) channel() string { return "plinth_" + l.clusterID }

// Follow listens on a connection of its own and polls besides: seldom while
// notifications arrive, often while they do not, as behind a transaction pooler.
func (l *database) Follow(ctx context.Context, by changelog.Follower) {
	f := follower{log: l, Follower: by, wake: make(chan struct{}, 1)}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { f.listen(ctx) })
	p := poll.Poller{
		Follower: by,
		Head: func(ctx context.Context) (int64, error) {
			h, err := reader{l}.Head(ctx)
			if errors.Is(err, changelog.ErrSetBack) {
				by.Hint(0)
			}
			return h.Revision, err
		},
		Most: f.pause,

		Notified: f.proven.Load,
		Wake:     f.wake,
		Found:    f.found,
	}
	p.Run(ctx)
}

type follower struct {
	changelog.Follower
	log  *database
	wake chan struct{}

	proven atomic.Bool  // notifications arrive
	told   atomic.Int64 // the highest head that a notification has brought

	suspect int64 // owned by the poller: a head that no notification had brought yet
}

func (f *follower) pause() time.Duration {
	if f.proven.Load() {
		return pollSafety
	}
	return poll.Longest(f.Follower)
}

// found is called with a head that polling found. Its notification may be a moment late,
// but not later than the next head that polling finds.
func (f *follower) found(head int64) {
	told := f.told.Load()
	if f.suspect > told {
		f.distrust()
	}
	f.suspect = 0
	if told < head {
		f.suspect = head
	}
}

// trust notes whether notifications arrive.
func (f *follower) trust(proven bool) {
	f.proven.Store(proven)
	if f.Polls != nil {
		f.Polls(!proven)
	}
}

func (f *follower) distrust() {
	f.trust(false)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// listen keeps a listening connection open until ctx ends.
func (f *follower) listen(ctx context.Context) {
	reported := false
	for ctx.Err() == nil {
		err := f.listenOnce(ctx)
		f.distrust()
		if ctx.Err() != nil {
			return
		}
		if !reported {
			f.log.log.Warn("notifications of Postgres do not arrive; polling", "err", err)
			reported = !f.proven.Load()
		}
		_ = sleep.For(ctx, dialPause)
	}
}

var errNoProof = errors.New("a notification to itself did not come back")

func (f *follower) listenOnce(ctx context.Context) error {
	conn, err := f.log.connect(ctx, f.log.config.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{f.log.channel()}.Sanitize()); err != nil {
		return err
	}
	if err := f.prove(ctx, conn); err != nil {
		return err
	}
	f.Hint(0) // what was appended before LISTEN was not told
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		f.tell(n.Payload)
	}
}

// prove sends a notification through the pool, as another replica would, and waits for
// it: a transaction pooler accepts LISTEN and then delivers nothing.
func (f *follower) prove(ctx context.Context, conn *pgx.Conn) error {
	if _, err := f.log.pool.Exec(ctx, `SELECT pg_notify($1, '0')`, f.log.channel()); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err != nil {
		if ctx.Err() == nil && wait.Err() != nil {
			return errNoProof
		}
		return err
	}
	f.tell(n.Payload)
	return nil
}

func (f *follower) tell(payload string) {
	head, err := strconv.ParseInt(payload, 10, 64)
	if err != nil {
		head = 0
	}
	f.told.Store(max(head, f.told.Load())) // only one goroutine stores told
	f.trust(true)
	f.Hint(head)
}
