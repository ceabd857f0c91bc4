package allocate

import (
	"net"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/servicecidr"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// cidrPrefix begins the keys of ServiceCIDRs in the log.
var cidrPrefix = object.Prefix(networkingv1.GroupName, "servicecidrs")

// addresses allocates from all ServiceCIDRs of one family, as upstream's MetaAllocator does. The
// choice within a range is upstream's: requested addresses are likelier to be in the lower
// band, so the others are taken from the upper band.
// https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/
type addresses struct {
	*attempt
	family api.IPFamily
}

var _ ipallocator.Interface = &addresses{}

// Allocate takes an address.
func (f *addresses) Allocate(ip net.IP) error {
	of := f.containing(ip)
	if of == nil {
		return ipallocator.ErrMismatchedNetwork
	}
	return of.AllocateService(f.service, ip)
}

// AllocateNext takes any address that is free.
func (f *addresses) AllocateNext() (net.IP, error) {
	if f.failed = f.store.Healthy(); f.failed != nil { // no address could be taken
		return nil, f.failed
	}
	for _, cidr := range f.ready() {
		of := f.allocator(cidr)
		if of == nil {
			continue
		}
		ip, err := of.AllocateNextService(f.service)
		if f.failed != nil {
			return nil, f.failed
		}
		if err == nil {
			return ip, nil
		}
	}
	return nil, ipallocator.ErrFull
}

// Release gives an address back.
func (f *addresses) Release(ip net.IP) error { return f.release(ip.String()) }

// DryRun returns an allocator that takes nothing. Like upstream's, it only checks that a
// requested address is in the range, and returns the range's own address in place of others.
func (f *addresses) DryRun() ipallocator.Interface {
	for _, cidr := range f.ready() {
		if of := f.allocator(cidr); of != nil {
			return of.DryRun()
		}
	}
	return &ipallocator.Allocator{}
}

// containing is an allocator for ip.
func (f *addresses) containing(ip net.IP) *ipallocator.Allocator {
	for _, cidr := range f.ready() {
		prefix, err := netip.ParsePrefix(cidr.String())
		if err == nil && servicecidr.PrefixContainsIP(prefix, servicecidr.IPToAddr(ip)) {
			return f.allocator(cidr)
		}
	}
	return nil
}

// allocator is upstream's allocator of one range; nil for a range that it refuses.
func (f *addresses) allocator(cidr *net.IPNet) *ipallocator.Allocator {
	a, err := ipallocator.NewIPAllocator(cidr, client{attempt: f.attempt}, informer{attempt: f.attempt})
	if err != nil {
		return nil
	}
	return a
}

// ready are the ranges of the ServiceCIDRs that can be allocated from.
func (f *addresses) ready() (cidrs []*net.IPNet) {
	lister.Each(f.store, cidrPrefix, cidrPrefix, func(s *networkingv1.ServiceCIDR) {
		if !s.DeletionTimestamp.IsZero() || !isReady(s) {
			return
		}
		for _, text := range s.Spec.CIDRs {
			_, cidr, err := netutils.ParseCIDRSloppy(text)
			if err == nil && familyOf(netutils.IsIPv6CIDR(cidr)) == f.family {
				cidrs = append(cidrs, cidr)
			}
		}
	})
	return cidrs
}

// isReady reports whether a ServiceCIDR is ready. Without the condition it is: the controller
// that sets it need not run.
func isReady(s *networkingv1.ServiceCIDR) bool {
	for _, c := range s.Status.Conditions {
		if c.Type == networkingv1.ServiceCIDRConditionReady {
			return c.Status == metav1.ConditionTrue
		}
	}
	return true
}

// IPFamily is the family of all addresses.
func (f *addresses) IPFamily() api.IPFamily { return f.family }

// Upstream's storage of Services does not call the methods below.

func (f *addresses) CIDR() net.IPNet      { return net.IPNet{} }
func (f *addresses) Has(ip net.IP) bool   { return f.has(ip.String()) }
func (f *addresses) ForEach(func(net.IP)) {}
func (f *addresses) Destroy()             {}
func (f *addresses) EnableMetrics()       {}
