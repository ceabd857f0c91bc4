package components

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// Masks are the lengths of the prefixes of nodes' addresses, as in kube-controller-manager's --node-cidr-mask-size flags; 0: not
// given.
type Masks struct{ Any, IPv4, IPv6 int32 }

// Upstream's defaults.
const maskIPv4, maskIPv6 = 24, 64

// mostMaskBits is how much longer than the whole range's the prefix of a node with IPv6 may be, as in upstream.
const mostMaskBits = 16

// CheckRanges says what is wrong with the addresses of pods (Config.ClusterCIDR), as upstream's controller would, which starts
// later.
func CheckRanges(cluster, service []string, masks Masks) error {
	seen := map[bool]bool{}
	for _, text := range cluster {
		r, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%q: write a range such as 10.244.0.0/16", text)
		}
		if seen[r.Addr().Is4()] {
			return fmt.Errorf("%q is the second range of its family: write one, or one of IPv4 and one of IPv6", text)
		}
		seen[r.Addr().Is4()] = true
		if mask := masks.of(r); mask < r.Bits() {
			return fmt.Errorf("%q has no room for a node with /%d: write a larger range, or another size with --kube-controller-manager-arg=node-cidr-mask-size=BITS", text, mask)
		} else if r.Addr().Is6() && mask > r.Bits()+mostMaskBits {
			return fmt.Errorf("%q has too many nodes with /%d: write a range of /%d or smaller", text, mask, mask-mostMaskBits)
		}
		for _, other := range service {
			if s, err := netip.ParsePrefix(other); err == nil && s.Overlaps(r) {
				return fmt.Errorf("%q overlaps with %s, the addresses of Services (--service-cluster-ip-range)", text, other)
			}
		}
	}
	return nil
}

// of is the length for the nodes of a range.
func (m Masks) of(r netip.Prefix) int {
	if r.Addr().Is4() {
		return int(cmp.Or(m.Any, m.IPv4, maskIPv4))
	}
	return int(cmp.Or(m.Any, m.IPv6, maskIPv6))
}
