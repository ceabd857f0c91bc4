package allocate

import (
	"fmt"
	"net"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	api "k8s.io/kubernetes/pkg/apis/core"
	netutils "k8s.io/utils/net"
)

// Ranges are the addresses and ports that may be allocated.
type Ranges struct {
	// Addresses is one range, or one of each family; the first has the default family of
	// Services. A ServiceCIDR may add ranges of these families.
	Addresses []*net.IPNet
	NodePorts utilnet.PortRange
}

// The defaults are those of kubeadm and of kube-apiserver.
const (
	DefaultAddresses = "10.96.0.0/12"
	DefaultNodePorts = "30000-32767"
)

// ParseRanges parses the flags --service-cluster-ip-range and --service-node-port-range; empty
// means the default. Errors say what to write.
func ParseRanges(addresses []string, nodePorts string) (r Ranges, err error) {
	if len(addresses) == 0 {
		addresses = []string{DefaultAddresses}
	}
	if nodePorts == "" {
		nodePorts = DefaultNodePorts
	}
	for _, text := range addresses {
		cidr, err := parseCIDR(strings.TrimSpace(text))
		if err != nil {
			return r, err
		}
		r.Addresses = append(r.Addresses, cidr)
	}
	if two, err := netutils.IsDualStackCIDRs(r.Addresses); err != nil || len(addresses) > 2 || len(addresses) == 2 && !two {
		return r, fmt.Errorf("--service-cluster-ip-range %q: write one range, or one of IPv4 and one of IPv6", strings.Join(addresses, ","))
	}
	ports, err := utilnet.ParsePortRange(nodePorts)
	if err != nil || ports.Size == 0 || ports.Base == 0 {
		return r, fmt.Errorf("--service-node-port-range %q: write FIRST-LAST, such as %s", nodePorts, DefaultNodePorts)
	}
	r.NodePorts = *ports
	return r, nil
}

// parseCIDR parses a range. The bounds are upstream's.
func parseCIDR(text string) (*net.IPNet, error) {
	_, cidr, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		return nil, fmt.Errorf("--service-cluster-ip-range %q: write a range, such as %s", text, DefaultAddresses)
	}
	ones, bits := cidr.Mask.Size()
	if bits-ones < 3 || bits == 128 && ones < 64 {
		return nil, fmt.Errorf("--service-cluster-ip-range %q: write a range of 8 addresses or more, of IPv6 no wider than a /64", text)
	}
	return cidr, nil
}

// CIDRs are the ranges of addresses as text.
func (r Ranges) CIDRs() (list []string) {
	for _, cidr := range r.Addresses {
		list = append(list, cidr.String())
	}
	return list
}

// First are the first addresses of the ranges. The first of them belongs to the kubernetes
// Service.
func (r Ranges) First() (list []net.IP) {
	for _, cidr := range r.Addresses {
		ip, err := netutils.GetIndexedIP(cidr, 1)
		if err == nil {
			list = append(list, ip)
		}
	}
	return list
}

func familyOf(ipv6 bool) api.IPFamily {
	if ipv6 {
		return api.IPv6Protocol
	}
	return api.IPv4Protocol
}
