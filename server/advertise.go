package server

import (
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	netutils "k8s.io/utils/net"
)

// advertised returns the address at which the other machines of a cluster find a server: the one
// that was asked for, or else the one that it listens on. In place of loopback and of all
// addresses that is the machine's, as in kube-apiserver (--advertise-address).
func advertised(asked net.IP, listen string, real net.IP) net.IP {
	if asked != nil && !asked.IsUnspecified() {
		return asked
	}
	// The socket for all IPv4 addresses takes IPv6 too, so its own address says [::].
	if host, _, _ := net.SplitHostPort(listen); host == "" || net.IPv4zero.Equal(net.ParseIP(host)) {
		real = nil // an IPv4 address is preferred
	}
	if found, err := utilnet.ResolveBindAddress(real); err == nil {
		return found
	}
	// The machine has no default route.
	interfaces, _ := net.InterfaceAddrs() // none: no other machine can reach it
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP
		}
	}
	return real
}

// checkAdvertised checks Config.AdvertiseAddress, given the first range of Services: the
// kubernetes Service has one family (upstream: kube-apiserver/app/options/validation.go).
func checkAdvertised(asked net.IP, services *net.IPNet) error {
	if asked == nil || asked.IsUnspecified() || netutils.IsIPv4CIDR(services) == netutils.IsIPv4(asked) {
		return nil
	}
	return fieldError("%v: service IP family %q must match public address family %q", field("AdvertiseAddress"), services, asked)
}

// advertisedNames are the names to add to the serving certificate. Nobody reaches a server at
// the machine's address that listens on loopback.
func advertisedNames(asked, found, real net.IP) []string {
	if found == nil || found.IsUnspecified() || (asked == nil || asked.IsUnspecified()) && real.IsLoopback() {
		return nil
	}
	return []string{found.String()}
}
