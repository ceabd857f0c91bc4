package controllers

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fence prevents a server from writing as the holder of a lease that it has lost. A process that was
// suspended, or cut off from its database, for longer than the lease lasts does not notice at first that
// another server has taken over.
type fence struct {
	lasts time.Duration // how long a lease lasts without a renewal

	mu      sync.Mutex
	renewed time.Time // when the last successful renewal began; zero: the lease is not held
	holder  string    // whom the lease named when it was last read
}

var errFenced = errors.New("this server does not hold the lease " + leaseName)

func (f *fence) hold(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = since
}

// read notes whom the lease names.
func (f *fence) read(holder string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holder = holder
}

// isHolder tells whether the lease named somebody when it was last read.
func (f *fence) isHolder(identity string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holder == identity
}

// held reports whether no other server can have the lease. It uses two clocks: one may stop while the machine
// sleeps, and the other may be set.
func (f *fence) held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	return !f.renewed.IsZero() && now.Sub(f.renewed) < f.lasts && now.Round(0).Sub(f.renewed.Round(0)) < f.lasts
}

// client returns a configuration whose writes fail while the lease is not held.
func (f *fence) client(c *clientrest.Config) *clientrest.Config {
	if f == nil {
		return c
	}
	c = clientrest.CopyConfig(c)
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return fenced{rt, f} })
	return c
}

type fenced struct {
	http.RoundTripper
	fence *fence
}

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !f.fence.held() {
		return nil, errFenced
	}
	return f.RoundTripper.RoundTrip(r)
}

// lock is the lease as the elector sees it. It reports renewals to the fence, and calls lost when there is
// another holder: the elector alone would continue as the leader until renewDeadline after its last renewal.
type lock struct {
	resourcelock.Interface
	fence *fence
	lost  func()
}

// Get implements resourcelock.Interface.
func (l lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.fence.read(record.HolderIdentity)
	}
	if err == nil && record.HolderIdentity != l.Identity() && l.fence.held() {
		l.fence.hold(time.Time{})
		l.lost()
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface. An elector that gives the lease back reads it before, and then writes
// without a look at who has it: one whose time had passed would take it from the next holder.
func (l lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && !l.fence.isHolder(l.Identity()) {
		return nil
	}
	return l.note(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l lock) note(record resourcelock.LeaderElectionRecord, write func() error) error {
	begun := time.Now()
	err := write()
	if err == nil && record.HolderIdentity == l.Identity() {
		l.fence.hold(begun)
	} else if err == nil {
		l.fence.hold(time.Time{})
	}
	return err
}
