package bench

import (
	"testing"
	"time"
)

func TestWatcherTakes(t *testing.T) {
	w := &watcher{seen: make([]bool, 3), done: make(chan struct{})}
	event := func(revision, n string) []byte {
		return []byte(`{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"` + revision + `"},"data":{"n":"` + n + `","sent":"1000"}}}`)
	}
	now := time.Unix(0, 3_001_000)
	w.take(event("10", "0"), now)
	w.take(event("10", "0"), now) // twice
	w.take(event("9", "1"), now)  // out of order
	w.take(event("12", "2"), now)
	if w.events != 2 || w.again != 2 || w.samples[0] != 3*time.Millisecond {
		t.Errorf("%d events, %d again, %v", w.events, w.again, w.samples)
	}
	w.take(event("13", "1"), now)
	select {
	case <-w.done:
	default:
		t.Error("all came, and it does not say so")
	}
}
