package sqlite

import (
	"context"
	"fmt"
	"time"

	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Move stops the log, also one that is open beside its server, whose writer reads the mark with the
// head.
func (l filling) Move(ctx context.Context, to string) (head int64, err error) {
	move := func() error {
		return l.transact(ctx, func(w *writer) (err error) {
			head, err = w.noteMoved(to)
			return err
		})
	}
	if l.beside != nil {
		err = l.beside.between(ctx, l, move)
	} else {
		err = move()
	}
	if err != nil {
		return 0, fmt.Errorf("move: %w", err)
	}
	return head, nil
}

func (w *writer) noteMoved(to string) (head int64, err error) {
	if _, err := w.head.one(); err != nil {
		return 0, err
	}
	noted, _ := w.head.row[3].(string)
	if err := changelog.CheckMove(noted, to); err != nil {
		return 0, err
	}
	head = max(w.head.row[0].(int64), w.head.row[1].(int64))
	if to == "" {
		_, err = w.exec(`DELETE FROM meta WHERE name = 'mark/moved'`)
	} else {
		_, err = w.exec(`INSERT INTO meta (name, value) VALUES ('mark/moved', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1`, to)
	}
	if err == nil {
		err = w.turn()
	}
	return head, err
}

// besidePause is how often a process beside the server asks for the write lock. Under load the server
// leaves it free for some microseconds between two batches; SQLite's own waiting looks ten times a
// second and would hardly ever meet them.
const besidePause = 100 * time.Microsecond

// between runs f between two transactions of the server.
func (b *beside) between(ctx context.Context, l filling, f func() error) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := l.setBusyTimeout(ctx, 0); err != nil {
		return err
	}
	err := f()
	for isCode(err, sqlite.ErrBusy) && ctx.Err() == nil {
		time.Sleep(besidePause)
		err = f()
	}
	if restored := l.setBusyTimeout(context.WithoutCancel(ctx), busyTimeout); err == nil {
		err = restored
	}
	if err == nil {
		err = b.check()
	}
	return err
}

// busyTimeout is for how many milliseconds SQLite waits for another connection.
const busyTimeout = 10_000

func (l filling) setBusyTimeout(ctx context.Context, milliseconds int) error {
	return l.use(ctx, func(w *writer) error {
		_, err := w.exec(fmt.Sprintf(`PRAGMA busy_timeout = %d`, milliseconds))
		return err
	})
}
