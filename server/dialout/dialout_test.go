package dialout

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// machine is a Dialer for a machine with these addresses, whose server listens on listen.
func machine(listen string, c Config) *Dialer {
	c.Listen = netip.MustParseAddrPort(listen)
	d := New(c)
	d.addrs = func() ([]net.Addr, error) {
		var all []net.Addr
		for _, cidr := range []string{"127.0.0.1/8", "192.0.2.7/24", "::1/128", "2001:db8::7/64", "fe80::7/64"} {
			ip, network, _ := net.ParseCIDR(cidr)
			all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		return all, nil
	}
	return d
}

// TestServers has a table of the forms in which an address of a server can be written, by where it listens.
func TestServers(t *testing.T) {
	for _, tt := range []struct {
		listen          string
		refused, others []string
	}{
		{"0.0.0.0:6443", []string{
			"127.0.0.1:6443", "127.9.9.9:6443", "0.0.0.0:6443", "192.0.2.7:6443", "[::ffff:192.0.2.7]:6443", "[::ffff:7f00:1]:6443",
			"[::1]:6443", "[::]:6443", "[2001:db8::7]:6443", "[2001:db8:0:0::0007]:6443", "[fe80::7]:6443", "[fe80::7%eth0]:6443", "[fe80::7%1]:6443",
		}, []string{"127.0.0.1:6444", "192.0.2.7:443", "192.0.2.8:6443", "[2001:db8::8]:6443"}},
		{"[::]:6443", []string{"127.0.0.1:6443", "192.0.2.7:6443", "[::ffff:192.0.2.7]:6443", "[::1]:6443"}, []string{"192.0.2.7:10250"}},
		{"127.0.0.1:6443", []string{"127.0.0.1:6443", "[::ffff:127.0.0.1]:6443", "0.0.0.0:6443", "[::]:6443"}, []string{"192.0.2.7:6443", "127.0.0.2:6443", "127.0.0.1:9443"}},
		{"192.0.2.7:6443", []string{"192.0.2.7:6443", "[::ffff:c000:207]:6443"}, []string{"127.0.0.1:6443", "192.0.2.7:10250"}},
		// Wherever it listens.
		{"192.0.2.7:6443", []string{
			"203.0.113.1:6443", "[::ffff:203.0.113.1]:6443", "[2001:db8:1::1]:6443", // names
			"198.51.100.1:7443", "[2001:db8:2::1]:7443", "10.96.0.1:443", // other servers
			"192.0.2.7:8443", "127.0.0.1:8443", "0.0.0.0:8443", "[::1]:8443", "[::]:8443", "[2001:db8::7]:8443", // one on this machine
		}, []string{"203.0.113.1:9443", "198.51.100.1:10250", "10.96.0.1:6444", "127.0.0.1:7443", "192.0.2.8:8443"}},
	} {
		d := machine(tt.listen, Config{
			Names: []string{"api.example.com", "203.0.113.1", "2001:db8:1:0::1"},
			Others: func() []netip.AddrPort {
				return []netip.AddrPort{
					netip.MustParseAddrPort("198.51.100.1:7443"), netip.MustParseAddrPort("[2001:db8:2::1]:7443"), netip.MustParseAddrPort("10.96.0.1:443"),
					netip.MustParseAddrPort("192.0.2.7:8443"),
				}
			},
		})
		for _, at := range tt.refused {
			if !d.isServer(netip.MustParseAddrPort(at)) {
				t.Errorf("%s is not taken for the server at %s", at, tt.listen)
			}
		}
		for _, at := range tt.others {
			if d.isServer(netip.MustParseAddrPort(at)) {
				t.Errorf("%s is taken for the server at %s", at, tt.listen)
			}
		}
	}
}

// listener is something that listens on all addresses of this machine, and its port.
func listener(t *testing.T) (accepted *atomic.Int64, port string) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted = &atomic.Int64{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return accepted, port
}

// TestDial dials each form of this machine, in each way, where the server is and where something else is.
func TestDial(t *testing.T) {
	accepted, own := listener(t)
	_, other := listener(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{"127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "::", "localhost", "api.example.com", "API.example.com."}
	if _, err := net.LookupHost(host); err == nil {
		forms = append(forms, host)
	}
	at := netip.MustParseAddrPort("0.0.0.0:" + own)
	for way, dialer := range map[string]func(*Dialer) Func{
		"webhook": func(d *Dialer) Func { return d.Dial },
		"kubelet": func(d *Dialer) Func { return d.DialKubelet },
		"proxied": func(d *Dialer) Func { return d.DialProxied },
	} {
		for _, tunnel := range []Func{nil, (&net.Dialer{}).DialContext} {
			dial := dialer(New(Config{Listen: at, Names: []string{"api.example.com"}, Dial: tunnel}))
			for _, form := range forms {
				conn, err := dial(t.Context(), "tcp", net.JoinHostPort(form, own))
				if err == nil {
					conn.Close()
				}
				loopback := errors.Is(err, errAddress) && way != "webhook" // which is refused anyway
				if !errors.Is(err, ErrServer) && !loopback {
					t.Errorf("%s to the server as %s, tunnel %v: %v", way, form, tunnel != nil, err)
				}
			}
			conn, err := dial(t.Context(), "tcp", "127.0.0.1:"+other)
			if err == nil {
				conn.Close()
			}
			if (err == nil) != (way != "proxied") {
				t.Errorf("%s to another port of this machine, tunnel %v: %v", way, tunnel != nil, err)
			}
			for _, metadata := range []string{"169.254.169.254:80", "[fe80::1]:80", "[::ffff:169.254.169.254]:80"} {
				if way == "webhook" {
					break
				}
				if _, err := dial(t.Context(), "tcp", metadata); !errors.Is(err, errAddress) {
					t.Errorf("%s to %s: %v", way, metadata, err)
				}
			}
		}
	}
	// The tunnel's own dialer resolves names, so that what is there is known only when it is connected.
	if n := accepted.Load(); n > 20 {
		t.Errorf("%d connections to the server", n)
	}
}

// TestRebinding has a name that leads elsewhere when it is checked and to this machine when it is dialled.
func TestRebinding(t *testing.T) {
	var asked atomic.Int64
	names := nameServer(t, func() [4]byte {
		if asked.Add(1) == 1 {
			return [4]byte{192, 0, 2, 99}
		}
		return [4]byte{127, 0, 0, 1}
	})
	before := net.DefaultResolver
	defer func() { net.DefaultResolver = before }()
	net.DefaultResolver = names
	if first, err := names.LookupHost(t.Context(), "moving.example."); err != nil || !slices.Equal(first, []string{"192.0.2.99"}) {
		t.Fatalf("at the check: %v, %v", first, err)
	}
	accepted, own := listener(t)
	_, other := listener(t)
	d := New(Config{Listen: netip.MustParseAddrPort("0.0.0.0:" + own)})
	for way, dial := range map[string]Func{"webhook": d.Dial, "kubelet": d.DialKubelet, "proxied": d.DialProxied} {
		if _, err := dial(t.Context(), "tcp", "moving.example.:"+own); !errors.Is(err, ErrServer) {
			t.Errorf("%s to the server: %v", way, err)
		}
		conn, err := dial(t.Context(), "tcp", "moving.example.:"+other)
		if way == "webhook" && err != nil || way != "webhook" && !errors.Is(err, errAddress) {
			t.Errorf("%s to another port of this machine: %v", way, err)
		}
		if err == nil {
			conn.Close()
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections to the server", n)
	}
}

// nameServer answers each question for an IPv4 address with what address returns.
func nameServer(t *testing.T, address func() [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: address()},
				}}
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// TestForwarded has the server behind an address that nobody knows of. Its certificate tells, before the
// client shows its own.
func TestForwarded(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	shown := make(chan int, 10)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, VerifyConnection: func(state tls.ConnectionState) error {
		shown <- len(state.PeerCertificates)
		return nil
	}}
	server.StartTLS()
	defer server.Close()
	for _, own := range []bool{true, false} {
		d := New(Config{Serves: func(leaf *x509.Certificate) bool { return own && leaf.Equal(server.Certificate()) }})
		config := d.TLS(&tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &server.TLS.Certificates[0], nil
		}})
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DialContext: d.Dial}}
		answer, err := client.Get(server.URL)
		if err == nil {
			answer.Body.Close()
		}
		client.CloseIdleConnections()
		if own != errors.Is(err, ErrServer) || own != strings.Contains(errText(err), "address not allowed") {
			t.Errorf("own %v: %v", own, err)
		}
	}
	if n, certificates := requests.Load(), <-shown; n != 1 || certificates != 1 || len(shown) != 0 {
		t.Errorf("%d requests, %d certificates, and %d more", n, certificates, len(shown))
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
