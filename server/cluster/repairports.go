package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

// checkPorts checks that each node port of a Service is allocated to it.
func (r *repair) checkPorts(ctx context.Context, svc *corev1.Service) error {
	for _, number := range nodePorts(svc) {
		if !r.ports.Range.Contains(number) {
			if err := r.reportFault(ctx, aboutService(svc), "PortOutOfRange",
				fmt.Sprintf("Port %d is not within the port range %s; please recreate service", number, r.ports.Range)); err != nil {
				return err
			}
			continue
		}
		if err := r.checkPort(ctx, svc, number); err != nil {
			return err
		}
	}
	return nil
}

func (r *repair) checkPort(ctx context.Context, svc *corev1.Service, number int) error {
	t, taken := r.ports.Get(number)
	own := allocate.Owner(svc.Namespace, svc.Name)
	if taken && t.Owner == own {
		return nil
	}
	if r.reread(svc, func(now *corev1.Service) bool { return slices.Contains(nodePorts(now), number) }) == nil {
		return nil
	}
	if taken {
		if other := r.service(&t.Owner); other != nil && slices.Contains(nodePorts(other), number) {
			return r.reportFault(ctx, aboutService(svc), "PortAlreadyAllocated",
				fmt.Sprintf("Port %d was assigned to multiple services; please recreate service", number))
		}
		if time.Since(t.Since) < r.grace {
			return nil // the other Service may not be stored yet
		}
		if err := r.ports.Free(ctx, t); err != nil {
			return err
		}
	}
	if err := r.ports.Take(ctx, number, own); errors.Is(err, portallocator.ErrAllocated) {
		return nil // the next pass finds its owner
	} else if err != nil {
		return err
	}
	return r.reportFault(ctx, aboutService(svc), "PortNotAllocated", fmt.Sprintf("Port %d is not allocated; repairing", number))
}

// freePorts releases the ports whose Services do not use them.
func (r *repair) freePorts(ctx context.Context) error {
	var leaked []allocate.Taken
	err := r.ports.Each(ctx, func(t allocate.Taken) {
		if time.Since(t.Since) < r.grace {
			return
		}
		if svc := r.service(&t.Owner); svc == nil || !slices.Contains(nodePorts(svc), t.Number) {
			leaked = append(leaked, t)
		}
	})
	for _, t := range leaked {
		if err := r.ports.Free(ctx, t); err != nil {
			return err
		}
	}
	return err
}

// nodePorts returns the node ports of a Service without duplicates.
func nodePorts(svc *corev1.Service) (numbers []int) {
	for _, p := range svc.Spec.Ports {
		numbers = append(numbers, int(p.NodePort))
	}
	numbers = append(numbers, int(svc.Spec.HealthCheckNodePort))
	slices.Sort(numbers)
	return slices.DeleteFunc(slices.Compact(numbers), func(n int) bool { return n == 0 })
}

// allocatorName marks the IPAddresses of Services.
const allocatorName = "ipallocator.k8s.io"

func addressLabels(ip net.IP) map[string]string {
	family := corev1.IPv4Protocol
	if netutils.IsIPv6(ip) {
		family = corev1.IPv6Protocol
	}
	return map[string]string{networkingv1.LabelIPAddressFamily: string(family), networkingv1.LabelManagedBy: allocatorName}
}

// labelled reports whether an IPAddress has the labels of one that was allocated to a Service.
func labelled(address *networkingv1.IPAddress) bool {
	for key, value := range addressLabels(net.ParseIP(address.Name)) {
		if address.Labels[key] != value {
			return false
		}
	}
	return true
}

func aboutService(svc *corev1.Service) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: svc.Namespace, Name: svc.Name, UID: svc.UID}
}

// hasAddress reports whether a Service has an address; name is its canonical form, which is the name of its
// IPAddress.
func hasAddress(svc *corev1.Service, name string) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && slices.ContainsFunc(svc.Spec.ClusterIPs, func(text string) bool {
		ip := netutils.ParseIPSloppy(text)
		return ip != nil && ip.String() == name
	})
}
