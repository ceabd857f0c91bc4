package refused

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestAnswer(t *testing.T) {
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	err := Answer(t.Context(), time.Millisecond, silent)
	want := "database unavailable: no answer within 1ms; the server hangs, or another session has locked plinth's tables"
	if !errors.Is(err, changelog.ErrUnavailable) || err.Error() != want {
		t.Errorf("a silent server: %v, want %s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Answer(ctx, time.Minute, silent); !errors.Is(err, context.Canceled) || errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("a caller who goes: %v", err)
	}
	said := errors.New("said")
	if err := Answer(t.Context(), time.Minute, func(context.Context) error { return said }); err != said {
		t.Errorf("an answer: %v", err)
	}
}
