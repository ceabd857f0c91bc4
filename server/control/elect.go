package control

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The times are kube-controller-manager's.
const (
	leaseName     = "plinth-controllers"
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// runElected runs the controllers while this server holds the lease, again and again
// until ctx ends. At the end it gives the lease back, so that another server need not
// wait for it to run out.
func (m *Manager) runElected(ctx context.Context) {
	client, err := kubernetes.NewForConfig(m.client)
	if err != nil {
		m.config.Logf("elect a server for controllers: %v", err)
		return
	}
	for ctx.Err() == nil {
		if err := m.runTerm(ctx, client); err != nil {
			m.config.Logf("elect a server for controllers: %v", err)
			return
		}
	}
}

// runTerm is one term in office: it waits for the lease and returns when it is lost or
// given back. The lease is given back after the controllers have ended, not before, so
// it has a context of its own.
func (m *Manager) runTerm(ctx context.Context, client kubernetes.Interface) error {
	lease, giveBack := context.WithCancel(context.WithoutCancel(ctx))
	defer giveBack()
	term, endTerm := context.WithCancel(ctx)
	defer endTerm()
	var controllers sync.WaitGroup
	elected := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: leaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: m.config.Identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: endTerm,
		},
	})
	if err != nil {
		return err
	}
	controllers.Go(func() {
		defer giveBack()
		select {
		case <-elected:
			m.runControllers(term)
		case <-term.Done():
		}
	})
	elector.Run(lease)
	endTerm()
	controllers.Wait()
	m.release(ctx, client)
	return nil
}

// release gives the lease back if the elector could not: it is overtaken by its own renewal
// if that is under way.
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
		m.config.Logf("give back the lease of controllers: %v", err)
	}
}
