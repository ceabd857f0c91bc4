package logtest

import (
	"context"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestFollow: a hint comes from another Log on the same database, and Follow ends with
// its context.
func TestFollow(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) { follow(t, db.open(t), db.open(t)) })
}

// TestFollowWithoutNotifications cuts every connection that wants to listen.
func TestFollowWithoutNotifications(t *testing.T) {
	db := database{"postgres", Postgres(t)}
	p, dsn := through(t, db.dsn)
	p.arm("LISTEN", lose)
	writer := db.open(t)
	db.dsn = dsn
	follow(t, writer, db.open(t))
}

// TestFollowAfterReconnect cuts the listening connection; what is written then is told
// all the same.
func TestFollowAfterReconnect(t *testing.T) {
	db := database{"postgres", Postgres(t)}
	p, dsn := through(t, db.dsn)
	writer := db.open(t)
	db.dsn = dsn
	reader := db.open(t)
	follow(t, writer, reader)
	p.cut()
	follow(t, writer, reader)
}

func follow(t *testing.T, writer, reader log) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	hints, ended := make(chan int64, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		reader.Follow(ctx, changelog.Follower{Hint: func(head int64) { hints <- head }})
	}()
	for range 20 {
		written := writer.put("/registry/"+randomName(), 0, "x")
		within(t, "hint", func(ctx context.Context) error { return awaitHint(ctx, reader, hints, written) })
	}
	cancel()
	within(t, "end of Follow", func(ctx context.Context) error {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// awaitHint waits for a hint after which the reader finds revision.
func awaitHint(ctx context.Context, reader log, hints <-chan int64, revision int64) error {
	for {
		select {
		case head := <-hints:
			if head >= revision {
				return nil
			}
			if h, err := reader.Head(ctx); head == 0 && err == nil && h.Revision >= revision {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
