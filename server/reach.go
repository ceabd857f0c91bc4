package server

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/dialout"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/pki"
)

// outside connects to what users name.
type outside struct {
	dialer     *dialout.Dialer // to webhooks and extension servers
	transports transports      // to nodes and to what runs on them

	// subject is that of the certificate that is shown to kubelets, if it is from a file.
	subject atomic.Pointer[string]
}

// newDialer makes what connects to everything but servers of this API; dial may be nil.
func (s *Server) newDialer(dial dialout.Func) *dialout.Dialer {
	names := slices.Clone(s.config.SANs)
	for _, ip := range []net.IP{s.config.AdvertiseAddress, s.ip} {
		if ip != nil {
			names = append(names, ip.String())
		}
	}
	return dialout.New(dialout.Config{
		Listen: s.listener.Addr().(*net.TCPAddr).AddrPort(), Names: names, Others: s.otherServers,
		Serves: s.pki.Serves, Dial: dial,
	})
}

// otherServers are where clients find this server besides where it listens, and where they find the others
// on its database.
func (s *Server) otherServers() (all []netip.AddrPort) {
	for _, ip := range s.ranges.First() {
		if at, ok := netip.AddrFromSlice(ip); ok {
			all = append(all, netip.AddrPortFrom(at.Unmap(), 443))
		}
	}
	for _, other := range cluster.Others(s.store, s.identity) {
		all = append(all, other.Addresses(uint16(s.port()))...)
	}
	return all
}

// owns tells whose a client's certificate is.
func (s *Server) owns(leaf *x509.Certificate) authn.Ownership {
	subject := s.outside.subject.Load()
	switch {
	case pki.IsPeer(leaf):
		return authn.ForServers
	case s.pki.IsForOthers(leaf), subject != nil && leaf.Subject.String() == *subject:
		return authn.ForOthers
	}
	return authn.NotOwn
}

// transports are connections to nodes and to what runs on them.
type transports []*http.Transport

// reach is how this server gets at nodes and at what runs on them. It connects to nothing.
func (s *Server) reach() (builtin.Reach, error) {
	c, t, dialer := &s.config, &s.transports, s.newDialer(s.config.Dial)
	config := &tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.kubeletCertificate() },
		InsecureSkipVerify:   true,
	}
	unverified := t.add(dialer.DialKubelet, dialer.TLS(config))
	verified := unverified
	if c.KubeletCA != "" {
		pool, err := cert.NewPool(c.KubeletCA)
		if err != nil {
			return builtin.Reach{}, fieldError("%v: %w", field("KubeletCA"), err)
		}
		config = config.Clone()
		config.RootCAs, config.InsecureSkipVerify = pool, false
		verified = t.add(dialer.DialKubelet, dialer.TLS(config))
	}
	if _, err := s.kubeletSubject(); err != nil {
		return builtin.Reach{}, fieldError("%v and %v: %w", field("KubeletCertificate"), field("KubeletKey"), err)
	}
	reach := builtin.Reach{
		// Pods are reached by their addresses, which are in no certificate.
		Proxy:           t.add(dialer.DialProxied, dialer.TLS(&tls.Config{InsecureSkipVerify: true})),
		Kubelet:         verified,
		InsecureKubelet: unverified,
	}
	for _, name := range c.KubeletAddressTypes {
		reach.Addresses = append(reach.Addresses, corev1.NodeAddressType(name))
	}
	return reach, nil
}

// add makes a transport that closeIdle knows.
func (t *transports) add(dial dialout.Func, config *tls.Config) *http.Transport {
	added := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: config, DialContext: dial})
	*t = append(*t, added)
	return added
}

func (t transports) closeIdle() {
	for _, transport := range t {
		transport.CloseIdleConnections()
	}
}

// kubeletCertificate is what the server shows to a kubelet.
func (s *Server) kubeletCertificate() (*tls.Certificate, error) {
	if s.config.KubeletCertificate == "" {
		return s.pki.Kubelet()
	}
	return s.kubeletSubject()
}

// kubeletSubject reads the certificate for kubelets from its files, and notes its subject before it is
// shown to anybody. It returns nil if there are none. Files are read for each connection, so that
// they may be replaced while the server runs.
func (s *Server) kubeletSubject() (*tls.Certificate, error) {
	if s.config.KubeletCertificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.config.KubeletCertificate, s.config.KubeletKey)
	if err != nil {
		return nil, err
	}
	subject := pair.Leaf.Subject.String()
	s.outside.subject.Store(&subject)
	return &pair, nil
}
