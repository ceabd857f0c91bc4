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
	"github.com/plinth-io/plinth/server/dialout"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/pki"
)

// outside is what connects to addresses that users name. None of them is a server of this API.
type outside struct {
	config *Config
	pki    *pki.PKI
	// others are the addresses at which clients find this server, but for the one that it listens on, and those
	// at which they find the other servers on its database.
	others func() []netip.AddrPort
	listen netip.AddrPort
	names  []string // of this server

	dialer     *dialout.Dialer // to webhooks and extension servers
	transports transports      // to nodes and to what runs on them

	// subject is that of the certificate that is shown to kubelets, if it is from a file.
	subject atomic.Pointer[string]
}

// open makes the dialer. It connects to nothing.
func (o *outside) open(c *Config, at *listening, own *pki.PKI, others func() []netip.AddrPort) {
	o.config, o.pki, o.others = c, own, others
	o.listen, o.names = at.listener.Addr().(*net.TCPAddr).AddrPort(), slices.Clone(c.SANs)
	for _, ip := range []net.IP{c.AdvertiseAddress, at.ip} {
		if ip != nil {
			o.names = append(o.names, ip.String())
		}
	}
	o.dialer = o.newDialer(nil)
}

// newDialer makes what connects to everything but servers of this API; dial may be nil.
func (o *outside) newDialer(dial dialout.Func) *dialout.Dialer {
	return dialout.New(dialout.Config{Listen: o.listen, Names: o.names, Others: o.others, Serves: o.pki.Serves, Dial: dial})
}

// owns tells whose a client's certificate is.
func (o *outside) owns(leaf *x509.Certificate) authn.Ownership {
	subject := o.subject.Load()
	switch {
	case pki.IsPeer(leaf):
		return authn.ForServers
	case o.pki.IsForOthers(leaf), subject != nil && leaf.Subject.String() == *subject:
		return authn.ForOthers
	}
	return authn.NotOwn
}

// transports are connections to nodes and to what runs on them.
type transports []*http.Transport

// toNodes returns the transports to nodes and to what runs on them. It connects to nothing.
func (o *outside) toNodes() (builtin.Transports, error) {
	c, t, dialer := o.config, &o.transports, o.newDialer(o.config.Dial)
	config := &tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.kubeletCertificate() },
		InsecureSkipVerify:   true,
	}
	unverified := t.add(dialer.DialKubelet, dialer.TLS(config))
	verified := unverified
	if c.KubeletCA != "" {
		pool, err := cert.NewPool(c.KubeletCA)
		if err != nil {
			return builtin.Transports{}, fieldError("%v: %w", field("KubeletCA"), err)
		}
		config = config.Clone()
		config.RootCAs, config.InsecureSkipVerify = pool, false
		verified = t.add(dialer.DialKubelet, dialer.TLS(config))
	}
	if _, err := o.kubeletSubject(); err != nil {
		return builtin.Transports{}, fieldError("%v and %v: %w", field("KubeletCertificate"), field("KubeletKey"), err)
	}
	to := builtin.Transports{
		// Pods are reached by their addresses, which are in no certificate.
		Proxy:           t.add(dialer.DialProxied, dialer.TLS(&tls.Config{InsecureSkipVerify: true})),
		Kubelet:         verified,
		InsecureKubelet: unverified,
	}
	for _, name := range c.KubeletAddressTypes {
		to.Addresses = append(to.Addresses, corev1.NodeAddressType(name))
	}
	return to, nil
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
func (o *outside) kubeletCertificate() (*tls.Certificate, error) {
	if o.config.KubeletCertificate == "" {
		return o.pki.Kubelet()
	}
	return o.kubeletSubject()
}

// kubeletSubject reads the certificate for kubelets from its files, and notes its subject before it is
// shown to anybody. It returns nil if there are none. Files are read for each connection, so that
// they may be replaced while the server runs.
func (o *outside) kubeletSubject() (*tls.Certificate, error) {
	if o.config.KubeletCertificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.config.KubeletCertificate, o.config.KubeletKey)
	if err != nil {
		return nil, err
	}
	subject := pair.Leaf.Subject.String()
	o.subject.Store(&subject)
	return &pair, nil
}
