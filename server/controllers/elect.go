package controllers

import (
	"context"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// These times are kube-controller-manager's.
const (
	leaseName     = "plinth-controllers"
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// runElected runs the controllers while this server holds the lease, again and again until ctx ends. Then it
// releases the lease, so that another server need not wait until it expires.
func (m *Manager) runElected(ctx context.Context) {
	config := clientrest.CopyConfig(m.client)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return withoutRetries{rt} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		m.config.Logger.Error("controllers do not run: no election is possible", "err", err)
		return
	}
	m.fence = &fence{lasts: leaseDuration}
	for ctx.Err() == nil {
		if err := m.runTerm(ctx, client); err != nil {
			m.config.Logger.Error("controllers do not run: no election is possible", "err", err)
			return
		}
	}
}

// withoutRetries keeps clients from retrying by themselves. The elector retries at its own intervals, and
// when the server stops, nobody must wait for a database that takes no writes.
type withoutRetries struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i withoutRetries) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := i.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// runTerm waits for the lease, runs the controllers, and returns when the lease is lost or
// released. The lease is released after the controllers have ended, so the elector has a
// context of its own.
func (m *Manager) runTerm(ctx context.Context, client kubernetes.Interface) error {
	lease, giveBack := context.WithCancel(context.WithoutCancel(ctx))
	defer giveBack()
	term, endTerm := context.WithCancel(ctx)
	defer endTerm()
	var controllers sync.WaitGroup
	elected := make(chan struct{})
	others := make(chan string, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaseName,
		Lock: lock{&resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: leaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: m.config.Identity},
		}, m.fence, endTerm},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: endTerm,
			OnNewLeader: func(identity string) { // runs in a goroutine that nobody waits for
				select {
				case others <- identity:
				default:
				}
			},
		},
	})
	if err != nil {
		return err
	}
	controllers.Go(func() {
		defer giveBack()
		if m.awaitElection(term, elected, others) {
			m.config.Logger.Info("this server runs the controllers", "controllers", len(m.enabled))
			m.runControllers(term)
			m.config.Logger.Info("this server runs the controllers no more")
		}
	})
	elector.Run(lease)
	endTerm()
	controllers.Wait()
	m.release(ctx, client)
	return nil
}

// awaitElection reports whether this server was elected before the term ended. While it waits, it logs which
// other servers are elected.
func (m *Manager) awaitElection(term context.Context, elected <-chan struct{}, others <-chan string) bool {
	for {
		select {
		case <-elected:
			return true
		case identity := <-others:
			if identity != "" && identity != m.config.Identity {
				m.config.Logger.Info("another server runs the controllers", "identity", identity)
			}
		case <-term.Done():
			return false
		}
	}
}

// release releases the lease if the elector could not: the elector's release conflicts if one of its renewals
// is still running.
func (m *Manager) release(ctx context.Context, client kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewDeadline)
	defer cancel()
	leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := leases.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != m.config.Identity {
		return
	}
	nobody := ""
	lease.Spec.HolderIdentity = &nobody
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		m.config.Logger.Warn("the lease of controllers could not be given back; it runs out", "err", err)
	}
}
