package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Listener is a listener of a Transport.
type Listener struct {
	net.Listener
	Secure    bool   // with TLS
	URL       string // the URL for clients on this machine, with the real port
	PagesOnly bool   // only the Server's pages, no gRPC
}

// Address is a URL to listen on, as etcd writes it: http://HOST:PORT, https://HOST:PORT,
// unix://PATH, or unixs://PATH, which is a socket with TLS.
type Address struct {
	Scheme string
	Host   string // HOST:PORT; for sockets, the path
}

// maxSocketPath is the longest path of a socket in bytes.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// ParseAddress parses a URL to listen on. Its error says what to write instead.
func ParseAddress(text string) (Address, error) {
	bad := fmt.Errorf("%q: write http://HOST:PORT, https://HOST:PORT or unix:///PATH", text)
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Address{}, bad
	}
	a := Address{Scheme: u.Scheme, Host: u.Host}
	switch u.Scheme {
	case "unix", "unixs":
		if a.Host += u.Path; a.Host == "" {
			return Address{}, bad
		}
		if len(a.Host) > maxSocketPath {
			return Address{}, fmt.Errorf("%q: the path has %d bytes, and that of a socket may have %d: write a shorter one", text, len(a.Host), maxSocketPath)
		}
	case "http", "https":
		if u.Port() == "" || strings.Trim(u.Path, "/") != "" {
			return Address{}, bad
		}
		if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return Address{}, fmt.Errorf("%q: write a port up to %d", text, math.MaxUint16)
		}
	default:
		return Address{}, bad
	}
	return a, nil
}

func (a Address) String() string { return a.Scheme + "://" + a.Host }

// Secure reports whether clients use TLS.
func (a Address) Secure() bool { return strings.HasSuffix(a.Scheme, "s") }

func (a Address) socket() bool { return strings.HasPrefix(a.Scheme, "unix") }

// Local reports whether only this machine can connect.
func (a Address) Local() bool {
	host, _, _ := net.SplitHostPort(a.Host)
	return a.socket() || host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Listen listens on the address. It replaces a socket that another process has left behind. Only the owner
// may use a socket.
func (a Address) Listen() (Listener, error) {
	var l net.Listener
	var err error
	if a.socket() {
		l, err = listenSocket(a.Host)
	} else {
		l, err = net.Listen("tcp", a.Host)
	}
	if err != nil {
		return Listener{}, a.listenError(err)
	}
	return Listener{Listener: l, Secure: a.Secure(), URL: a.reachable(l.Addr())}, nil
}

// reachable returns the URL with the real port, and with loopback in place of all addresses.
func (a Address) reachable(real net.Addr) string {
	if a.socket() {
		return a.String()
	}
	host, _, _ := net.SplitHostPort(a.Host)
	_, port, _ := net.SplitHostPort(real.String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return a.Scheme + "://" + net.JoinHostPort(host, port)
}

func listenSocket(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(path) {
		if err = os.Remove(path); err == nil {
			l, err = net.Listen("unix", path)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// abandoned reports whether path is a socket on which nobody listens.
func abandoned(path string) bool {
	if !isSocket(path) {
		return false
	}
	c, err := net.DialTimeout("unix", path, 10*time.Second)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// listenError adds what to write instead of an address that cannot be listened on.
func (a Address) listenError(err error) error {
	host, _, _ := net.SplitHostPort(a.Host)
	write := "write another address of this machine"
	switch {
	case a.socket() && errors.Is(err, syscall.EADDRINUSE) && !isSocket(a.Host):
		err, write = errors.New("something else than a socket is there"), "write a path where nothing is, in a directory that is there"
	case a.socket() && errors.Is(err, syscall.EADDRINUSE):
		err, write = syscall.EADDRINUSE, "write another path, or end the process that listens there"
	case a.socket():
		write = "write a path in a directory that is there and may be written to"
	case errors.Is(err, syscall.EADDRINUSE):
		err, write = syscall.EADDRINUSE, "write another port, or "+net.JoinHostPort(host, "0")+" for a free one, or end the process that listens there"
	case errors.Is(err, fs.ErrPermission):
		err, write = syscall.EACCES, "ports below 1024 need root or CAP_NET_BIND_SERVICE: write a higher one, such as 2379"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		err, write = syscall.EADDRNOTAVAIL, "write an address of this machine, or 0.0.0.0 for all of them"
	}
	return fmt.Errorf("%s: %w; %s", a, err, write)
}
