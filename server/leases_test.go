package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server/apitest"
)

// nodeLeases makes the Leases of nodes, with a client that does not hold requests back.
func nodeLeases(t *testing.T, s *Server, n int) (coordinationclient.LeaseInterface, []*coordinationv1.Lease) {
	t.Helper()
	config := clientrest.CopyConfig(s.RESTConfig())
	config.QPS = -1
	client, err := coordinationclient.NewForConfig(config)
	must(t, err)
	leases, all := client.Leases("kube-node-lease"), make([]*coordinationv1.Lease, n)
	now := metav1.NewMicroTime(time.Now())
	for i := range all {
		name := fmt.Sprintf("node-%d", i)
		all[i], err = leases.Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To(int32(3600)), RenewTime: &now},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	return leases, all
}

// transactions is the metric of that name.
func transactions(t *testing.T, s *Server) (n int) {
	t.Helper()
	const name = "\nplinth_transactions_total "
	_, rest, _ := strings.Cut(metricsOf(t, apitest.Typed(t, s)), name)
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// renew renews a Lease as a kubelet does.
func renew(t *testing.T, leases coordinationclient.LeaseInterface, lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
	got, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	if err != nil {
		t.Errorf("renew %s: %v", lease.Name, err)
		return lease
	}
	return got
}

// TestLeaseCommitDelay counts the transactions of 50 nodes that renew their Leases, with and without
// Config.LeaseCommitDelay.
func TestLeaseCommitDelay(t *testing.T) {
	const nodes = 50
	for _, delay := range []time.Duration{0, time.Second} {
		s := start(t, Config{LeaseCommitDelay: delay}, idle)
		leases, all := nodeLeases(t, s, nodes)
		before := transactions(t, s)
		var renewing sync.WaitGroup
		for i := range all {
			if delay == 0 { // one after the other, as they come in a cluster
				all[i] = renew(t, leases, all[i])
				continue
			}
			renewing.Go(func() { all[i] = renew(t, leases, all[i]) })
		}
		renewing.Wait()
		n := transactions(t, s) - before
		t.Logf("with a delay of %v %d transactions", delay, n)
		if delay == 0 && n < nodes {
			t.Errorf("without a delay %d transactions: the test proves nothing", n)
		}
		if delay > 0 && n > nodes/3 { // one on a machine that has nothing else to do
			t.Errorf("with a delay of %v %d transactions", delay, n)
		}
		for _, lease := range all {
			got, err := leases.Get(t.Context(), lease.Name, metav1.GetOptions{})
			must(t, err)
			if !got.Spec.RenewTime.Equal(lease.Spec.RenewTime) {
				t.Errorf("%s: renewed at %v, stored is %v", lease.Name, lease.Spec.RenewTime, got.Spec.RenewTime)
			}
		}
	}
}

// TestChangeOfHolderIsNotDelayed changes holders while a renewal waits: each change is answered at once,
// and the renewal with one of them.
func TestChangeOfHolderIsNotDelayed(t *testing.T) {
	const delay = 5 * time.Second
	s := start(t, Config{LeaseCommitDelay: delay}, idle)
	leases, all := nodeLeases(t, s, 2)
	for range 10 { // a machine can be so busy that nothing is to be seen
		begun, renewed := time.Now(), make(chan struct{})
		go func() {
			defer close(renewed)
			all[0] = renew(t, leases, all[0])
		}()
		var changes int
		var longest time.Duration
		for waiting := true; waiting; changes++ {
			at := time.Now()
			all[1].Spec.HolderIdentity = ptr.To(fmt.Sprint("holder-", at.UnixNano()))
			all[1].Spec.LeaseTransitions = ptr.To(int32(changes))
			var err error
			all[1], err = leases.Update(t.Context(), all[1], metav1.UpdateOptions{})
			must(t, err)
			longest = max(longest, time.Since(at))
			select {
			case <-renewed:
				waiting = false
			default:
			}
		}
		took := time.Since(begun)
		t.Logf("%d changes of holder, the longest took %v; the renewal took %v", changes, longest, took)
		if took < delay && longest < delay {
			return
		}
	}
	t.Errorf("a change of holder took as long as a renewal may wait, or did not take the renewal along")
}

// TestStopWhileARenewalWaits stops the server under a renewal, which is stored.
func TestStopWhileARenewalWaits(t *testing.T) {
	c := Config{DSN: "sqlite://" + filepath.Join(t.TempDir(), "plinth.db"), LeaseCommitDelay: 5 * time.Second}
	s := start(t, c, idle, patient)
	leases, all := nodeLeases(t, s, 1)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		all[0] = renew(t, leases, all[0])
	}()
	apitest.Eventually(t, "the renewal has come", func() bool { return s.guard.Running() > 0 })
	must(t, s.Close())
	<-renewed
	s = start(t, c, idle)
	got, err := apitest.Typed(t, s).CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "node-0", metav1.GetOptions{})
	must(t, err)
	if !got.Spec.RenewTime.Equal(all[0].Spec.RenewTime) || got.ResourceVersion != all[0].ResourceVersion {
		t.Errorf("renewed at %v (%s), stored is %v (%s)", all[0].Spec.RenewTime, all[0].ResourceVersion, got.Spec.RenewTime, got.ResourceVersion)
	}
}
