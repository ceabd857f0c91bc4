package bench

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLiveInterrupted ends the context while no pod lives: the figures of fewer pods must not count.
func TestLiveInterrupted(t *testing.T) {
	n := &nodes{rig: &rig{run: &run{scale: quick}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := time.Now().Add(time.Hour)
	if err := n.live(ctx, "late", func(int) time.Time { return never }, &times{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
