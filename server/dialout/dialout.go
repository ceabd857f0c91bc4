// Package dialout connects to machines that users of the API name: kubelets, pods, endpoints of Services,
// webhooks and extension servers. It refuses to connect to this server, and to others on its database: what
// comes from a server is believed more than what comes from its users.
//
// The address counts that is connected to, after names are resolved. Where that says nothing, since somebody
// forwards connections, the certificate counts that is shown at the other end.
//
// The package owns what is refused. It must not know what goes over the connections.
package dialout

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Func connects to HOST:PORT, as a net.Dialer does.
type Func func(ctx context.Context, network, address string) (net.Conn, error)

// Config of a Dialer.
type Config struct {
	// Listen is where this server listens, with the real port.
	Listen netip.AddrPort
	// Names are further addresses and DNS names by which clients find this server, such as those of a
	// load balancer. They are refused at the port of Listen: others may lead elsewhere.
	Names []string
	// Others returns where the other servers on the database listen, and further addresses of this one.
	Others func() []netip.AddrPort
	// Serves tells whether a certificate is one that this server, or another on its database, shows to
	// clients.
	Serves func(*x509.Certificate) bool
	// Dial connects instead of a net.Dialer, if it is not nil. It sees addresses that were checked as
	// they are written only.
	Dial Func
}

// Dialer connects to what may be connected to. Its methods are safe for concurrent use.
type Dialer struct {
	c     Config
	host  string // of this machine
	addrs func() ([]net.Addr, error)
}

// New returns a Dialer.
func New(c Config) *Dialer {
	host, _ := os.Hostname()
	names := make([]string, len(c.Names))
	for i, name := range c.Names {
		if ip, err := netip.ParseAddr(name); err == nil {
			name = plain(ip).String()
		}
		names[i] = name
	}
	c.Names = names
	return &Dialer{c: c, host: host, addrs: net.InterfaceAddrs}
}

var (
	// ErrServer is the error for an address of this server or of another on its database.
	ErrServer = errors.New("address not allowed: a server of this API is there, which is not asked through itself")
	// errAddress has upstream's words (kube-apiserver: registry/core/node/strategy.go).
	errAddress = errors.New("address not allowed")
)

// Dial connects to a webhook or an extension server.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.dial(ctx, network, address, func(string, netip.Addr) error { return nil })
}

// DialKubelet connects to a kubelet. One on this machine may be at a loopback address; a name that
// strangers resolve leads to none.
func (d *Dialer) DialKubelet(ctx context.Context, network, address string) (net.Conn, error) {
	return d.dial(ctx, network, address, func(host string, ip netip.Addr) error {
		if ip.IsGlobalUnicast() || ip.IsLoopback() && d.here(host) {
			return nil
		}
		return errAddress
	})
}

// DialProxied connects to a port of a pod, of an endpoint or of a node. As in kube-apiserver, it is at
// no loopback and at no link-local address, such as that where clouds tell their machines secrets; but here
// a name is resolved once only.
func (d *Dialer) DialProxied(ctx context.Context, network, address string) (net.Conn, error) {
	return d.dial(ctx, network, address, func(_ string, ip netip.Addr) error {
		if ip.IsGlobalUnicast() {
			return nil
		}
		return errAddress
	})
}

// here tells whether a host is an address, or a name that this machine resolves by itself.
func (d *Dialer) here(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost") || strings.EqualFold(host, d.host)
}

func (d *Dialer) dial(ctx context.Context, network, address string, allowed func(host string, ip netip.Addr) error) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if port == strconv.Itoa(int(d.c.Listen.Port())) && d.named(host) {
		return nil, fmt.Errorf("dial %s: %w", address, ErrServer)
	}
	check := func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if d.isServer(at) {
			return ErrServer
		}
		return allowed(host, plain(at.Addr()))
	}
	if d.c.Dial == nil {
		own := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: check}
		return own.DialContext(ctx, network, address)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := check(ctx, network, net.JoinHostPort(ip.String(), port), nil); err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
	}
	conn, err := d.c.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && d.isServer(at) {
		conn.Close()
		return nil, fmt.Errorf("dial %s: %w", address, ErrServer)
	}
	return conn, nil
}

// named tells whether a host is one of the names of this server.
func (d *Dialer) named(host string) bool {
	return slices.ContainsFunc(d.c.Names, func(name string) bool { return strings.EqualFold(name, strings.TrimSuffix(host, ".")) })
}

// isServer tells whether this server, or another on its database, is at an address.
func (d *Dialer) isServer(at netip.AddrPort) bool {
	ip := plain(at.Addr())
	if at.Port() == d.c.Listen.Port() {
		// The system connects to an unspecified address on this machine.
		listen := plain(d.c.Listen.Addr())
		if ip == listen || ip.IsUnspecified() || listen.IsUnspecified() && d.local(ip) || d.named(ip.String()) {
			return true
		}
	}
	return d.c.Others != nil && d.isOther(netip.AddrPortFrom(ip, at.Port()))
}

// isOther tells whether another server on the database is at an address. One on this machine may be at each of
// the machine's.
func (d *Dialer) isOther(at netip.AddrPort) bool {
	return slices.ContainsFunc(d.c.Others(), func(other netip.AddrPort) bool {
		if other.Port() != at.Port() {
			return false
		}
		return other == at || d.local(other.Addr()) && (at.Addr().IsUnspecified() || d.local(at.Addr()))
	})
}

// local tells whether an address is this machine's.
func (d *Dialer) local(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, _ := d.addrs()
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(network.IP)
		return ok && plain(own) == ip
	})
}

// plain is an address without what can be written in several ways: IPv4 in IPv6, and a zone.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// TLS returns c for a connection that is ended before anything is sent on it, the own certificate among
// it, if a server of this API is at the other end.
func (d *Dialer) TLS(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if d.c.Serves != nil && len(state.PeerCertificates) > 0 && d.c.Serves(state.PeerCertificates[0]) {
			return ErrServer
		}
		return nil
	}
	return c
}
