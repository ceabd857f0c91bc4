package controllers

import (
	"context"
	"net/http"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type answers struct{ asked int }

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A server whose lease may have run out writes nothing, however it came to be late, and reads on.
func TestFence(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name    string
		renewed time.Time
		method  string
		passes  bool
	}{
		{"held", now, "POST", true},
		{"never held", time.Time{}, "DELETE", false},
		{"run out", now.Add(-time.Hour), "PATCH", false},
		{"run out, by the clock on the wall alone", now.Round(0).Add(-time.Hour), "PUT", false},
		{"the clock on the wall was set back", now.Round(0).Add(time.Hour), "PUT", true},
		{"a read", time.Time{}, "GET", true},
	} {
		f, target := &fence{lasts: time.Minute}, &answers{}
		f.hold(c.renewed)
		transport, err := clientrest.TransportFor(f.client(&clientrest.Config{Transport: target}))
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), c.method, "http://plinth/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transport.RoundTrip(request); (err == nil) != c.passes || target.asked == 1 != c.passes {
			t.Errorf("%s: %v after %d requests", c.name, err, target.asked)
		}
	}
}

// aLease is a lease in memory.
type aLease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
}

func (l *aLease) Identity() string { return "one" }

func (l *aLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := l.record
	return &record, nil, nil
}

func (l *aLease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.record = record
	return nil
}

// Whoever gives a lease back gives his own back, and not that of a server that has taken over meanwhile: an elector reads
// the lease before, and then writes without a look at who has it.
func TestLateGiveBack(t *testing.T) {
	for holder, want := range map[string]string{"one": "", "two": "two"} {
		lease := &aLease{record: resourcelock.LeaderElectionRecord{HolderIdentity: holder}}
		l := lock{lease, &fence{lasts: time.Minute}, func() {}}
		if _, _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || lease.record.HolderIdentity != want {
			t.Errorf("the lease of %s is that of %q then: %v", holder, lease.record.HolderIdentity, err)
		}
	}
}
