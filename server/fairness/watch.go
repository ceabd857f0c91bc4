package fairness

import (
	"sync"

	"k8s.io/apiserver/pkg/util/flowcontrol"
)

// signal calls a function when a watch has begun.
type signal struct {
	once  sync.Once
	begun func()
}

func newSignal(begun func()) *signal { return &signal{begun: begun} }

// Signal tells that the watch has begun; only the first call counts.
func (s *signal) Signal() { s.once.Do(s.begun) }

// Wait is not called: a direct watch needs nobody who waits.
func (s *signal) Wait() {}

// serveWatch has upstream's Handle run in a goroutine of its own, which ends when the watch has
// begun: Handle lasts as long as the watch has its seat.
func (w *waiting) serveWatch() (retryAfter string) {
	begun := flowcontrol.NewInitializationSignal()
	defer begun.Signal() // a watch that fails may never have begun
	start, handled := make(chan struct{}), make(chan any, 1)
	go func() {
		defer func() { handled <- recover() }()
		ctx, cancel := w.c.mayWait(w.r.HTTP.Context(), w.came)
		defer cancel()
		w.handle(ctx, func() {
			w.let()
			defer w.done(true)
			close(start)
			begun.Wait()
		})
	}()
	select {
	case <-start:
		defer func() {
			begun.Signal()
			if reason := <-handled; reason != nil {
				panic(reason)
			}
		}()
		w.c.watch(w.r, begun, w.next)
		return ""
	case reason := <-handled:
		if reason != nil {
			panic(reason)
		}
		return w.refused()
	}
}
