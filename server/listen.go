package server

import (
	"errors"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/plinth-io/plinth/server/fielderr"
)

// listening is where a server listens.
type listening struct {
	listener net.Listener
	url      string // https://HOST:PORT, for clients on this machine
	ip       net.IP // where the other machines of a cluster find the server
}

// listen takes the port, so that the real one is known to all that follows.
func listen(asked string, advertise net.IP) (l listening, err error) {
	if l.listener, err = net.Listen("tcp", asked); err != nil {
		return listening{}, listenError(asked, err)
	}
	l.ip = advertised(advertise, asked, l.own())
	l.url = "https://" + reachable(asked, l.listener.Addr())
	return l, nil
}

// host is where clients find the server: HOST:PORT.
func (l *listening) host() string { return strings.TrimPrefix(l.url, "https://") }

// listenError says what to write instead of an address that cannot be listened on.
func listenError(asked string, err error) error {
	host, _, _ := net.SplitHostPort(asked)
	var dns *net.DNSError
	var addr *net.AddrError
	write := "write another HOST:PORT, such as 127.0.0.1:6443"
	switch {
	case errors.As(err, &dns), errors.As(err, &addr):
		return fieldError("%v %q: %w; write HOST:PORT, such as 127.0.0.1:6443", field("Listen"), asked, err)
	case errors.Is(err, syscall.EADDRINUSE):
		err, write = syscall.EADDRINUSE, "write another port, or "+net.JoinHostPort(host, "0")+" for a free one, or end the process that listens there, which may be another plinth"
	case errors.Is(err, fs.ErrPermission):
		err, write = syscall.EACCES, "ports below 1024 need root or CAP_NET_BIND_SERVICE: write a higher one, such as "+net.JoinHostPort(host, "6443")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		err, write = syscall.EADDRNOTAVAIL, "write an address of this machine, or "+net.JoinHostPort("0.0.0.0", "6443")+" for all of them"
	}
	return fielderr.Errorf("%v %s: %w; %s", field("Listen"), asked, err, write)
}

// reachable returns the address under which clients on this machine find a listener.
func reachable(asked string, real net.Addr) string {
	host, _, _ := net.SplitHostPort(asked)
	_, port, _ := net.SplitHostPort(real.String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// own is the address that the server listens on.
func (l *listening) own() net.IP { return l.listener.Addr().(*net.TCPAddr).IP }

// port is the real port.
func (l *listening) port() int { return l.listener.Addr().(*net.TCPAddr).Port }
