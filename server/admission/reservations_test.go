package admission

import (
	"context"
	"testing"
	"time"
)

// Settle waits for the writes of its namespace that have begun before, and for no others.
func TestReservationsSettle(t *testing.T) {
	var r Reservations
	first, endFirst := context.WithCancel(t.Context())
	r.Begin(first, "a")
	if err := r.Settle(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error)
	go func() { settled <- r.Settle(t.Context(), "a") }()
	select {
	case err := <-settled:
		t.Fatalf("settled while a write runs: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	endFirst()
	if err := <-settled; err != nil {
		t.Error(err)
	}
	second, endSecond := context.WithCancel(t.Context())
	defer endSecond()
	r.Begin(second, "a")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Settle(ended, "a"); err == nil {
		t.Error("no error although the caller has ended")
	}
}

// A write that has ended is forgotten.
func TestReservationsEnd(t *testing.T) {
	var r Reservations
	request, end := context.WithCancel(t.Context())
	r.Begin(request, "a")
	end()
	for deadline := time.Now().Add(2 * time.Minute); len(r.of("a")) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is still there")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.running) != 0 {
		t.Errorf("left: %v", r.running)
	}
}

func TestNoReservations(t *testing.T) {
	var r *Reservations
	if err := r.Settle(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
