package control

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/servicecidr"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// RepairEvery is kube-apiserver's interval.
const RepairEvery = 3 * time.Minute

// inTheMaking is how long something may be taken for a Service that has not been stored yet:
// twice as long as a request may take, so that clocks may differ.
func inTheMaking(requestTimeout time.Duration) time.Duration {
	return 2 * max(requestTimeout, 30*time.Second)
}

const (
	addressPrefix = "/registry/networking.k8s.io/ipaddresses/"
	cidrPrefix    = "/registry/networking.k8s.io/servicecidrs/"
)

// repair keeps what Services have and what is taken for them the same, as upstream's repair
// loops do: a server may have died between the two, or somebody may have meddled. What cannot
// be repaired is told in events. It runs in every server, as in every kube-apiserver: most
// passes find nothing, and two that find the same do it once.
type repair struct {
	*clients
	config Config
	grace  time.Duration
}

// RepairServices repairs at once and every so often, and brings an IPAddress back as soon as
// it is deleted under a Service, until ctx ends. requestTimeout is how long a request may take.
func RepairServices(ctx context.Context, config Config, every, requestTimeout time.Duration) {
	c, err := newClients(config.Client)
	if err != nil {
		config.Logf("%v", err)
		return
	}
	r := &repair{clients: c, config: config, grace: inTheMaking(requestTimeout)}
	var both sync.WaitGroup
	defer both.Wait()
	// A pass comes after each beginning to follow: what went before that is heard of by none.
	following := make(chan struct{}, 1)
	both.Go(func() { r.followAddresses(ctx, following) })
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-following:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := r.pass(ctx); err != nil && ctx.Err() == nil {
			config.Logf("repair addresses and ports of Services: %v", err)
		}
	}
}

func (r *repair) followAddresses(ctx context.Context, begun chan<- struct{}) {
	tell := func() {
		select {
		case begun <- struct{}{}:
		default: // a pass is due already
		}
	}
	for ctx.Err() == nil {
		err := follow(ctx, r.config.Store, addressPrefix, tell, func(ev *sqlstore.Event) { r.addressChanged(ctx, ev) })
		if err != nil && pauseFor(ctx, retryRead) != nil {
			return
		}
	}
}

func (r *repair) addressChanged(ctx context.Context, ev *sqlstore.Event) {
	if ev.Type != sqlstore.Delete {
		return
	}
	address, err := lister.Decode[networkingv1.IPAddress](ev.Entry)
	if err != nil || !isService(address.Spec.ParentRef) {
		return
	}
	if svc := r.service(address.Spec.ParentRef); svc != nil && hasAddress(svc, address.Name) {
		if err := r.checkAddresses(ctx, svc); err != nil && ctx.Err() == nil {
			r.config.Logf("repair addresses of Service %s/%s: %v", svc.Namespace, svc.Name, err)
		}
	}
}

// pass looks at everything once.
func (r *repair) pass(ctx context.Context) (err error) {
	if _, err := r.config.Store.Sync(ctx); err != nil {
		return err
	}
	for _, svc := range all[corev1.Service](r.config.Store, servicePrefix) {
		if err := r.checkAddresses(ctx, svc); err != nil {
			return fmt.Errorf("service %s/%s: %w", svc.Namespace, svc.Name, err)
		}
		if err := r.checkPorts(ctx, svc); err != nil {
			return fmt.Errorf("service %s/%s: %w", svc.Namespace, svc.Name, err)
		}
	}
	for _, address := range all[networkingv1.IPAddress](r.config.Store, addressPrefix) {
		if err := r.checkAddress(ctx, address); err != nil {
			return fmt.Errorf("IPAddress %s: %w", address.Name, err)
		}
	}
	return r.freePorts(ctx)
}

// all are collected before anything is changed.
func all[T any](store *sqlstore.Store, prefix string) (list []*T) {
	lister.Each(store, prefix, prefix, func(object *T) { list = append(list, object) })
	return list
}

// checkAddresses sees that each address of a Service is its own.
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
		return r.report(ctx, aboutService(svc), "ClusterIPOutOfRange",
			fmt.Sprintf("Cluster IP %s is not within any configured Service CIDR; please recreate service", ip))
	}
	address := storedObject[networkingv1.IPAddress](r.config.Store, addressPrefix, ip.String())
	if address == nil {
		return r.takeAddress(ctx, svc, ip, fmt.Sprintf("Cluster IP %s is not allocated; repairing", ip))
	}
	ref, own := address.Spec.ParentRef, refOf(svc)
	if ref != nil && *ref == own && labelled(address) {
		return nil
	}
	if r.now(svc, func(now *corev1.Service) bool { return hasAddress(now, ip.String()) }) == nil {
		return nil
	}
	if isService(ref) && *ref != own {
		if other := r.service(ref); other != nil && hasAddress(other, ip.String()) {
			return r.report(ctx, aboutService(svc), "ClusterIPAlreadyAllocated",
				fmt.Sprintf("Cluster IP %s was assigned to multiple services; please recreate service", ip))
		}
		if time.Since(address.CreationTimestamp.Time) < r.grace {
			return nil // the other may be about to be stored
		}
	}
	if err := r.deleteAddress(ctx, address); err != nil {
		return err
	}
	return r.takeAddress(ctx, svc, ip, fmt.Sprintf("the ClusterIP %s has a wrong reference; repairing", ip))
}

// takeAddress makes the IPAddress that a Service lacks.
func (r *repair) takeAddress(ctx context.Context, svc *corev1.Service, ip net.IP, note string) error {
	if r.now(svc, func(now *corev1.Service) bool { return hasAddress(now, ip.String()) }) == nil {
		return nil
	}
	ref := refOf(svc)
	_, err := r.networking.IPAddresses().Create(ctx, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: addressLabels(ip)},
		Spec:       networkingv1.IPAddressSpec{ParentRef: &ref},
	}, metav1.CreateOptions{})
	if err != nil {
		return orExists("IPAddress "+ip.String(), err) // the next pass looks whose it is
	}
	return r.report(ctx, aboutService(svc), "ClusterIPNotAllocated", note)
}

// checkAddress sees that an IPAddress that was taken for a Service is still needed.
func (r *repair) checkAddress(ctx context.Context, address *networkingv1.IPAddress) error {
	if address.Labels[networkingv1.LabelManagedBy] != allocatorName || time.Since(address.CreationTimestamp.Time) < r.grace {
		return nil
	}
	ref := address.Spec.ParentRef
	note := fmt.Sprintf("IPAddress %s appears to have been modified, not referencing a Service: cleaning up", address.Name)
	if isService(ref) {
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
	return r.report(ctx, about, "IPAddressNotAllocated", note)
}

func (r *repair) deleteAddress(ctx context.Context, address *networkingv1.IPAddress) error {
	err := r.networking.IPAddresses().Delete(ctx, address.Name, *metav1.NewPreconditionDeleteOptions(string(address.UID)))
	if errors.IsConflict(err) {
		return nil
	}
	return orGone("IPAddress "+address.Name, err)
}

// now is a Service as it is now, nil if it has gone since svc was read, or has not what it had.
// It is asked after what is taken was looked at: then it is as new as that, and what another
// Service has got meanwhile is not mistaken for what svc has.
func (r *repair) now(svc *corev1.Service, has func(*corev1.Service) bool) *corev1.Service {
	ref := refOf(svc)
	now := r.service(&ref)
	if now == nil || now.UID != svc.UID || !has(now) {
		return nil
	}
	return now
}

// service is the Service that a reference means, nil if there is none.
func (r *repair) service(ref *networkingv1.ParentReference) *corev1.Service {
	return storedObject[corev1.Service](r.config.Store, servicePrefix, ref.Namespace+"/"+ref.Name)
}

func (r *repair) inRange(ip net.IP) bool {
	return slices.ContainsFunc(all[networkingv1.ServiceCIDR](r.config.Store, cidrPrefix), func(s *networkingv1.ServiceCIDR) bool {
		return slices.ContainsFunc(s.Spec.CIDRs, func(text string) bool {
			prefix, err := netip.ParsePrefix(text)
			return err == nil && servicecidr.PrefixContainsIP(prefix, servicecidr.IPToAddr(ip))
		})
	})
}
