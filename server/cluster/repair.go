package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/servicecidr"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// allocationGrace is how long an address or a port may be allocated before its Service is stored: twice the
// time that a request may take, because clocks may differ.
func allocationGrace(requestTimeout time.Duration) time.Duration {
	return 2 * max(requestTimeout, 30*time.Second)
}

var (
	addressPrefix = object.Prefix(networkingv1.GroupName, "ipaddresses")
	cidrPrefix    = object.Prefix(networkingv1.GroupName, "servicecidrs")
)

// repair reconciles the addresses and ports of Services with those that are allocated, as upstream's repair
// loops do. They differ if a server has died between the two writes, or if somebody has changed one of them.
// Events report what cannot be repaired. Every server runs it, as every kube-apiserver does: most passes find
// nothing, and if two servers repair the same object, one of them succeeds.
type repair struct {
	*clients
	store  *sqlstore.Store
	ports  *allocate.Ports // the node ports of Services
	grace  time.Duration
	logger *slog.Logger
}

// repairServices repairs all Services at once and then at intervals, until ctx ends. If somebody deletes the
// IPAddress of a Service, it restores the IPAddress immediately.
func (c *Cluster) repairServices(ctx context.Context) {
	r := c.newRepair(allocationGrace(c.config.Times.Request))
	var following sync.WaitGroup
	defer following.Wait()
	// A pass runs each time the follower begins, because the follower does not see earlier changes.
	begun := make(chan struct{}, 1)
	following.Go(func() { r.followAddresses(ctx, begun) })
	passes := job{
		every: c.config.Times.Repair, due: begun, do: r.pass,
		failed: "addresses and ports of Services could not be repaired; it is tried again",
	}
	passes.run(ctx, c.config.Logger)
}

// newRepair returns a repair that ignores allocations younger than grace.
func (c *Cluster) newRepair(grace time.Duration) *repair {
	ports := allocate.NewPorts(c.config.Store, c.config.Here.Ranges.NodePorts)
	return &repair{clients: c.clients, store: c.config.Store, ports: ports, grace: grace, logger: c.config.Logger}
}

func (r *repair) followAddresses(ctx context.Context, begun chan<- struct{}) {
	tell := func() {
		select {
		case begun <- struct{}{}:
		default: // a pass is due already
		}
	}
	for ctx.Err() == nil {
		err := lister.Follow(ctx, r.store, addressPrefix, tell, func(ev *sqlstore.Event) { r.addressChanged(ctx, ev) })
		if err != nil && sleep.For(ctx, lister.RetryRead) != nil {
			return
		}
	}
}

func (r *repair) addressChanged(ctx context.Context, ev *sqlstore.Event) {
	if ev.Type != sqlstore.Delete || r.readable() != nil {
		return
	}
	address, err := lister.Decode[networkingv1.IPAddress](ev.Entry)
	if err != nil || !allocate.IsOwner(address.Spec.ParentRef) {
		return
	}
	if svc := r.service(address.Spec.ParentRef); svc != nil && hasAddress(svc, address.Name) {
		if err := r.checkAddresses(ctx, svc); err != nil && ctx.Err() == nil {
			r.logger.Debug("addresses of a Service could not be repaired; it is tried again", "namespace", svc.Namespace, "name", svc.Name, "err", err)
		}
	}
}

// readable returns an error if a Service, an IPAddress or a ServiceCIDR cannot be decrypted. Then nothing is
// repaired: the lists would lack that object, and another Service could get its address.
func (r *repair) readable() error {
	for _, prefix := range []string{lister.ServicePrefix, addressPrefix, cidrPrefix} {
		if err := lister.Unreadable(r.store, prefix); err != nil {
			return err
		}
	}
	return nil
}

// pass checks all Services, IPAddresses and node ports once.
func (r *repair) pass(ctx context.Context) (err error) {
	if _, err := r.store.Sync(ctx); err != nil {
		return err
	}
	if err := r.readable(); err != nil {
		return err
	}
	for _, svc := range lister.All[corev1.Service](r.store, lister.ServicePrefix) {
		if err := r.checkAddresses(ctx, svc); err != nil {
			return fmt.Errorf("service %s/%s: %w", svc.Namespace, svc.Name, err)
		}
		if err := r.checkPorts(ctx, svc); err != nil {
			return fmt.Errorf("service %s/%s: %w", svc.Namespace, svc.Name, err)
		}
	}
	for _, address := range lister.All[networkingv1.IPAddress](r.store, addressPrefix) {
		if err := r.checkAddress(ctx, address); err != nil {
			return fmt.Errorf("IPAddress %s: %w", address.Name, err)
		}
	}
	return r.freePorts(ctx)
}

// checkAddresses checks that each address of a Service is allocated to it.
func (r *repair) checkAddresses(ctx context.Context, svc *corev1.Service) error {
	if !helper.IsServiceIPSet(svc) {
		return nil
	}
	for _, text := range svc.Spec.ClusterIPs {
		ip := netutils.ParseIPSloppy(text)
		if ip == nil {
			continue // validation refuses it
		}
		if err := r.checkClusterIP(ctx, svc, ip); err != nil {
			return err
		}
	}
	return nil
}

func (r *repair) checkClusterIP(ctx context.Context, svc *corev1.Service, ip net.IP) error {
	if !r.inRange(ip) {
		return r.reportFault(ctx, aboutService(svc), "ClusterIPOutOfRange",
			fmt.Sprintf("Cluster IP %s is not within any configured Service CIDR; please recreate service", ip))
	}
	address := lister.Get[networkingv1.IPAddress](r.store, addressPrefix, ip.String())
	if address == nil {
		return r.takeAddress(ctx, svc, ip, fmt.Sprintf("Cluster IP %s is not allocated; repairing", ip))
	}
	ref, own := address.Spec.ParentRef, allocate.Owner(svc.Namespace, svc.Name)
	if ref != nil && *ref == own && labelled(address) {
		return nil
	}
	if r.reread(svc, func(now *corev1.Service) bool { return hasAddress(now, ip.String()) }) == nil {
		return nil
	}
	if allocate.IsOwner(ref) && *ref != own {
		if other := r.service(ref); other != nil && hasAddress(other, ip.String()) {
			return r.reportFault(ctx, aboutService(svc), "ClusterIPAlreadyAllocated",
				fmt.Sprintf("Cluster IP %s was assigned to multiple services; please recreate service", ip))
		}
		if time.Since(address.CreationTimestamp.Time) < r.grace {
			return nil // the other Service may not be stored yet
		}
	}
	if err := r.deleteAddress(ctx, address); err != nil {
		return err
	}
	return r.takeAddress(ctx, svc, ip, fmt.Sprintf("the ClusterIP %s has a wrong reference; repairing", ip))
}

// takeAddress creates the missing IPAddress of a Service.
func (r *repair) takeAddress(ctx context.Context, svc *corev1.Service, ip net.IP, note string) error {
	if r.reread(svc, func(now *corev1.Service) bool { return hasAddress(now, ip.String()) }) == nil {
		return nil
	}
	ref := allocate.Owner(svc.Namespace, svc.Name)
	_, err := r.networking.IPAddresses().Create(ctx, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: addressLabels(ip)},
		Spec:       networkingv1.IPAddressSpec{ParentRef: &ref},
	}, metav1.CreateOptions{})
	if err != nil {
		return orExists("IPAddress "+ip.String(), err) // the next pass finds its owner
	}
	return r.reportFault(ctx, aboutService(svc), "ClusterIPNotAllocated", note)
}

// checkAddress deletes the IPAddress of a Service that does not use it any more.
func (r *repair) checkAddress(ctx context.Context, address *networkingv1.IPAddress) error {
	if address.Labels[networkingv1.LabelManagedBy] != allocatorName || time.Since(address.CreationTimestamp.Time) < r.grace {
		return nil
	}
	ref := address.Spec.ParentRef
	note := fmt.Sprintf("IPAddress %s appears to have been modified, not referencing a Service: cleaning up", address.Name)
	if allocate.IsOwner(ref) {
		svc := r.service(ref)
		if svc != nil && hasAddress(svc, address.Name) {
			return nil
		}
		note = fmt.Sprintf("IPAddress %s for Service %s/%s appears to have leaked: cleaning up", address.Name, ref.Namespace, ref.Name)
	}
	if err := r.deleteAddress(ctx, address); err != nil {
		return err
	}
	about := corev1.ObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress", Name: address.Name, UID: address.UID}
	return r.reportFault(ctx, about, "IPAddressNotAllocated", note)
}

func (r *repair) deleteAddress(ctx context.Context, address *networkingv1.IPAddress) error {
	err := r.networking.IPAddresses().Delete(ctx, address.Name, *metav1.NewPreconditionDeleteOptions(string(address.UID)))
	if apierrors.IsConflict(err) {
		return nil
	}
	return orGone("IPAddress "+address.Name, err)
}

// reread returns the current version of svc, or nil if the Service is gone or has() is now false. Callers
// call it after they have read the allocations, so that the Service is not older than those: otherwise an
// address that another Service has since been given could be taken for svc's.
func (r *repair) reread(svc *corev1.Service, has func(*corev1.Service) bool) *corev1.Service {
	ref := allocate.Owner(svc.Namespace, svc.Name)
	now := r.service(&ref)
	if now == nil || now.UID != svc.UID || !has(now) {
		return nil
	}
	return now
}

// service returns the Service that a reference names, nil if there is none.
func (r *repair) service(ref *networkingv1.ParentReference) *corev1.Service {
	return lister.Get[corev1.Service](r.store, lister.ServicePrefix, ref.Namespace+"/"+ref.Name)
}

func (r *repair) inRange(ip net.IP) bool {
	return slices.ContainsFunc(lister.All[networkingv1.ServiceCIDR](r.store, cidrPrefix), func(s *networkingv1.ServiceCIDR) bool {
		return slices.ContainsFunc(s.Spec.CIDRs, func(text string) bool {
			prefix, err := netip.ParsePrefix(text)
			return err == nil && servicecidr.PrefixContainsIP(prefix, servicecidr.IPToAddr(ip))
		})
	})
}
