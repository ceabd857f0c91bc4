package scrubs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/scrubs"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// breaking is a log whose database goes away when a row is read.
type breaking struct {
	changelog.Log
	at int64 // 0: none; negative: at any time
}

type breakingFrozen struct {
	changelog.Frozen
	at int64
}

var errGone = fmt.Errorf("%w: the connection is lost", changelog.ErrUnavailable)

func (b *breaking) Freeze(ctx context.Context, f func(changelog.Frozen) error) error {
	if b.at < 0 {
		return errGone
	}
	return b.Log.Freeze(ctx, func(z changelog.Frozen) error { return f(breakingFrozen{z, b.at}) })
}

func (z breakingFrozen) Page(ctx context.Context, after int64, limit int, f func(*changelog.Row) error) error {
	return z.Frozen.Page(ctx, after, limit, func(r *changelog.Row) error {
		if r.Revision == z.at {
			return errGone
		}
		return f(r)
	})
}

// A database that goes away whenever one row is read is damaged; one that is away, or goes away now and then, is not.
func TestSamePlace(t *testing.T) {
	log, err := dialects.Open(t.Context(), "sqlite://:memory:", dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i := range 9 {
		name := fmt.Sprintf("c%d", i)
		value := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"}}`, name)
		if _, err := log.Append(t.Context(), []changelog.Change{{Key: "/registry/core/configmaps/default/" + name, Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	source := &breaking{Log: log}
	s := scrubs.New(scrubs.Scrubber{Source: source, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Pace: func(context.Context) func() { return func() {} }})
	for i, turn := range []struct {
		at       int64
		problems int
	}{{0, 0}, {-1, 0}, {-1, 0}, {4, 0}, {7, 0}, {7, 1}, {-1, 1}, {3, 1}, {0, 0}} {
		source.at = turn.at
		err := s.Look(t.Context())
		if _, problems, _ := s.Last(); problems != turn.problems || (err != nil) != (turn.at != 0) || err != nil && !errors.Is(err, errGone) {
			t.Errorf("turn %d: %d problems, %v", i, problems, err)
		}
	}
}
