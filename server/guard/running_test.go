package guard

import "testing"

// Idle is closed when Close was called and the last request has left, in either order.
func TestRunning(t *testing.T) {
	idle := func(n *running) bool {
		select {
		case <-n.idle:
			return true
		default:
			return false
		}
	}
	n := &running{idle: make(chan struct{})}
	for range 2 {
		if !n.enter() {
			t.Fatal("a request is not let in")
		}
	}
	n.leave()
	n.leave()
	if idle(n) {
		t.Error("idle before it is closed")
	}
	if !n.enter() {
		t.Fatal("a request is not let in")
	}
	n.close()
	if idle(n) {
		t.Error("idle while a request runs")
	}
	if n.enter() {
		t.Error("a request is let in after close")
	}
	n.leave()
	if !idle(n) || n.count.Load() != 0 {
		t.Errorf("not idle with %d requests", n.count.Load())
	}
	n.close() // again
	alone := &running{idle: make(chan struct{})}
	if alone.close(); !idle(alone) {
		t.Error("not idle without any request")
	}
}
