package allocate

import (
	"net"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	api "k8s.io/kubernetes/pkg/apis/core"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/fielderr"
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

// The fields of server.Config that say what the ranges are.
const (
	clusterIPRange fielderr.Name = "ServiceClusterIPRange"
	nodePortRange  fielderr.Name = "ServiceNodePortRange"
)

// ParseRanges parses ranges of cluster IPs and of node ports; empty means the default. Errors name the fields
// of server.Config, and say what to write.
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
		return r, fielderr.Errorf("%v %q: write one range, or one of IPv4 and one of IPv6", clusterIPRange, strings.Join(addresses, ","))
	}
	ports, err := utilnet.ParsePortRange(nodePorts)
	if err != nil || ports.Size == 0 || ports.Base == 0 {
		return r, fielderr.Errorf("%v %q: write FIRST-LAST, such as %s", nodePortRange, nodePorts, DefaultNodePorts)
	}
	r.NodePorts = *ports
	return r, nil
}

// parseCIDR parses a range. The bounds are upstream's.
func parseCIDR(text string) (*net.IPNet, error) {
	_, cidr, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		return nil, fielderr.Errorf("%v %q: write a range, such as %s", clusterIPRange, text, DefaultAddresses)
	}
	ones, bits := cidr.Mask.Size()
	if bits-ones < 3 || bits == 128 && ones < 64 {
		return nil, fielderr.Errorf("%v %q: write a range of 8 addresses or more, of IPv6 no wider than a /64", clusterIPRange, text)
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
