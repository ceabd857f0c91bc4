// Package turns has work done once in an interval by one of the servers on a database, whichever is
// there. Where that cannot be agreed, each does it: work that is done twice is better than work that is never
// done, such as a search for the damage that is in the way. It owns the Lease that says when the work was last begun, and must not know what the work is.
package turns

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clientrest "k8s.io/client-go/rest"
)

// Turn is work that is due once in an interval.
type Turn struct {
	Name     string        // of the Lease in kube-system
	Every    time.Duration // the interval
	Identity string        // of this server
	Client   *clientrest.Config
	Logger   *slog.Logger
	// Done tells, of work that leaves something behind which all servers see, that one has done it within the interval, or is
	// at it. It is asked where the Lease cannot tell. nil: each does the work.
	Done func() bool

	leases coordinationclient.LeaseInterface
	seen   string    // version of the Lease
	since  time.Time // when seen was first read
}

const (
	// looks is how often in an interval a server looks whether the work is due; mostPause bounds the
	// pause between two looks.
	looks     = 20
	mostPause = time.Minute
	// retries is after which part of the interval work is tried again that has failed.
	retries = 10
	// timeout bounds a look.
	timeout = 10 * time.Second
	// mostUnknown is how long it may be unknown whose turn it is, if the interval is longer.
	mostUnknown = 10 * time.Minute
)

// Run does the work whenever it is due, until ctx ends. An error of the work is the caller's to tell: the
// work is tried again after a tenth of the interval.
func (t *Turn) Run(ctx context.Context, work func(context.Context) error) error {
	client, err := kubernetes.NewForConfig(t.Client)
	if err != nil {
		return err
	}
	t.leases = client.CoordinationV1().Leases(metav1.NamespaceSystem)
	tick := time.NewTicker(min(max(t.Every/looks, time.Millisecond), mostPause))
	defer tick.Stop()
	var unknown, alone time.Time // since when it is not known whose turn it is; when this server works for itself
	for {
		mine, err := t.take(ctx)
		switch now := time.Now(); {
		case ctx.Err() != nil:
		case err == nil:
			if unknown = (time.Time{}); mine {
				t.do(ctx, work)
			}
		case unknown.IsZero():
			unknown, alone = now, now.Add(min(t.Every, mostUnknown))
			t.Logger.Warn("it is not known whose turn it is; it is asked again", "lease", t.Name, "err", err)
		case now.After(alone) && !t.done():
			t.Logger.Warn("it is still not known whose turn it is; this server does the work, as others may", "lease", t.Name, "since", unknown, "err", err)
			next := t.Every
			if work(ctx) != nil {
				next /= retries
			}
			alone = now.Add(next)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (t *Turn) done() bool { return t.Done != nil && t.Done() }

// do does the work, and tells the others meanwhile that it goes on.
func (t *Turn) do(ctx context.Context, work func(context.Context) error) {
	begun := time.Now()
	var keeping sync.WaitGroup
	working, done := context.WithCancel(ctx)
	keeping.Go(func() { t.keep(working) })
	err := work(ctx)
	done()
	keeping.Wait()
	last := begun
	if err != nil {
		last = time.Now().Add(t.Every/retries - t.Every)
	}
	if err := t.note(ctx, last); err != nil && ctx.Err() == nil {
		t.Logger.Warn("the end of some work could not be noted; it is done again later than it should be", "lease", t.Name, "err", err)
	}
}

// keep renews the Lease until ctx ends.
func (t *Turn) keep(ctx context.Context) {
	tick := time.NewTicker(max(t.Every/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			_ = t.note(ctx, now) // or the next time
		}
	}
}

// take says whether the work is due and this server's, which it is if no other was faster to note that.
func (t *Turn) take(ctx context.Context) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	lease, err := t.leases.Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = t.leases.Create(ctx, t.fill(&coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: t.Name}}, time.Now()), metav1.CreateOptions{})
		return settle(err)
	}
	if err != nil {
		return false, err
	}
	if lease.ResourceVersion != t.seen {
		t.seen, t.since = lease.ResourceVersion, time.Now()
	}
	// The time in a Lease is that of another clock, or of this one before it was set back.
	if last := lease.Spec.RenewTime; last != nil && time.Since(last.Time) < t.Every && time.Since(t.since) < t.Every {
		return false, nil
	}
	_, err = t.leases.Update(ctx, t.fill(lease, time.Now()), metav1.UpdateOptions{})
	return settle(err)
}

// settle takes a race that was lost for an answer.
func settle(err error) (mine bool, _ error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

// note notes when the work was last begun, if this server has the Lease.
func (t *Turn) note(ctx context.Context, last time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	lease, err := t.leases.Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != t.Identity {
		return fmt.Errorf("another server has taken the turn")
	}
	_, err = t.leases.Update(ctx, t.fill(lease, last), metav1.UpdateOptions{})
	return err
}

func (t *Turn) fill(lease *coordination.Lease, last time.Time) *coordination.Lease {
	at, seconds := metav1.NewMicroTime(last), int32(max(t.Every.Seconds(), 1))
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &t.Identity, &at, &seconds
	return lease
}
