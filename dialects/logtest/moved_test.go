package logtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestMove stops a log: also for those who wait for the write lock, and for the next Open. Then it is
// taken back.
func TestMove(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		ctx := t.Context()
		l := db.open(t)
		a := l.put("/registry/a", 0, "1")
		stopped := make(chan int)
		go func() { // at the latest when the log has moved, each attempt fails
			n := 0
			for revision := a; ; n++ {
				appended, err := l.Append(context.Background(), []changelog.Change{{Key: "/registry/a", Expect: revision, Value: []byte("2")}})
				if errors.Is(err, changelog.ErrMoved) {
					break
				}
				if err != nil {
					t.Error(err)
					break
				}
				revision = appended.Results[0].Revision
			}
			stopped <- n
		}()
		head, err := l.Move(ctx, "cluster postgres://host/database")
		if err != nil {
			t.Fatal(err)
		}
		n := <-stopped
		if now := l.head(); now.Revision != head || head != a+int64(n) {
			t.Errorf("the log ends at %d; Move said %d, and there were %d changes after %d", now.Revision, head, n, a)
		}
		for name, batch := range map[string][]changelog.Change{
			"a change":   {{Key: "/registry/b", Value: []byte("1")}},
			"a conflict": {{Key: "/registry/a", Value: []byte("1")}},
			"changes":    {{Key: "/registry/b", Value: []byte("1")}, {Key: "/registry/c", Value: []byte("1")}},
			"a probe":    nil,
		} {
			_, err := l.Append(ctx, batch)
			if !errors.Is(err, changelog.ErrMoved) || !errors.Is(err, changelog.ErrUnavailable) || !strings.Contains(err.Error(), "moved to postgres://host/database") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := changelog.CheckMoved(ctx, l); !errors.Is(err, changelog.ErrMoved) {
			t.Errorf("the mark: %v", err)
		}
		if again, err := l.Move(ctx, "cluster postgres://host/database"); err != nil || again != head {
			t.Errorf("again: %d, %v", again, err)
		}
		if _, err := l.Move(ctx, "other elsewhere"); !errors.Is(err, changelog.ErrMoved) || !strings.Contains(err.Error(), "postgres://host/database") {
			t.Errorf("to another place: %v", err)
		}
		if back, err := l.Move(ctx, ""); err != nil || back != head {
			t.Errorf("back: %d, %v", back, err)
		}
		if err := changelog.CheckMoved(ctx, l); err != nil {
			t.Errorf("the mark when it is taken back: %v", err)
		}
		if b := l.put("/registry/b", 0, "1"); b != head+1 {
			t.Errorf("goes on at %d after %d", b, head)
		}
	})
}
