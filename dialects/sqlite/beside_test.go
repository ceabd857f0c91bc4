package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestBeside opens a file beside its server, under load. It sees what is committed, does not migrate or
// stamp the file, and ends without taking anything away, whoever ends first.
func TestBeside(t *testing.T) {
	for name, serverFirst := range map[string]bool{"the server ends first": true, "the server ends last": false} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			o := Options{Path: filepath.Join(t.TempDir(), "plinth.db")}
			server, err := Open(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			stop, stopped := context.WithCancel(ctx)
			done := make(chan int64)
			go func() { done <- writeOn(t, stop, server) }()

			o.Beside, o.MustExist = true, true
			beside, err := Open(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			for head := (changelog.Head{}); head.Revision < 50; {
				if head, err = beside.Head(ctx); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			head, err := beside.Move(ctx, "x y")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("stopped at %d after %v", head, time.Since(begin))
			if last := <-done; last != head {
				t.Errorf("the last change is %d, and the log moved at %d", last, head)
			}
			stopped()
			rows, err := beside.Rows(ctx, 0, int(head)+1)
			if err != nil || len(rows) != int(head) {
				t.Errorf("%d rows, %v", len(rows), err)
			}
			logs := []*Log{beside, server}
			if serverFirst {
				logs = []*Log{server, beside}
			}
			if err := errors.Join(logs[0].Close(), logs[1].Close()); err != nil {
				t.Fatal(err)
			}
			o.Beside = false
			again, err := Open(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if err := changelog.CheckMoved(ctx, again); !errors.Is(err, changelog.ErrMoved) {
				t.Errorf("the next start: %v", err)
			}
		})
	}
}

// writeOn appends until the log has moved, and returns the last revision.
func writeOn(t *testing.T, ctx context.Context, l *Log) (last int64) {
	for ctx.Err() == nil {
		a, err := l.Append(ctx, []changelog.Change{{Key: "/registry/a", Expect: last, Value: []byte("{}")}})
		if errors.Is(err, changelog.ErrMoved) {
			return last
		}
		if err != nil {
			t.Error(err)
			return last
		}
		last = a.Results[0].Revision
	}
	return last
}

// TestBesideRestart restarts the server while a copy has the file open, and puts another file in place.
func TestBesideRestart(t *testing.T) {
	ctx := t.Context()
	o := Options{Path: filepath.Join(t.TempDir(), "plinth.db")}
	server, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	besideOptions := o
	besideOptions.Beside = true
	beside, err := Open(ctx, besideOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if server, err = Open(ctx, o); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := server.Append(ctx, []changelog.Change{{Key: "/registry/a", Value: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	if rows, err := beside.Rows(ctx, 0, 10); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if err := os.Rename(o.Path, o.Path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := beside.Move(ctx, "x y"); err == nil {
		t.Error("a file that is not in place any more has moved")
	}
	if err := errors.Join(os.Remove(o.Path), os.Rename(o.Path+".old", o.Path)); err != nil {
		t.Fatal(err)
	}
}
