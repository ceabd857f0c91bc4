package server

import (
	"crypto/tls"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// transports are connections to nodes and to what runs on them.
type transports []*http.Transport

// reach is how this server gets at nodes and at what runs on them; own is the certificate
// that it shows to kubelets if config names none. It connects to nothing.
func (t *transports) reach(c *Config, own func() (*tls.Certificate, error)) (builtin.Reach, error) {
	config := &tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return kubeletCertificate(c, own) },
		InsecureSkipVerify:   true,
	}
	unverified := t.add(c, config)
	verified := unverified
	if c.KubeletCA != "" {
		pool, err := cert.NewPool(c.KubeletCA)
		if err != nil {
			return builtin.Reach{}, configError("Config.KubeletCA: %w", err)
		}
		config = config.Clone()
		config.RootCAs, config.InsecureSkipVerify = pool, false
		verified = t.add(c, config)
	}
	reach := builtin.Reach{
		// Pods are reached by their addresses, which are in no certificate.
		Proxy:           t.add(c, &tls.Config{InsecureSkipVerify: true}),
		Kubelet:         verified,
		InsecureKubelet: unverified,
	}
	for _, name := range c.KubeletAddressTypes {
		reach.Addresses = append(reach.Addresses, corev1.NodeAddressType(name))
	}
	return reach, nil
}

// add makes a transport that closeIdle knows.
func (t *transports) add(c *Config, config *tls.Config) *http.Transport {
	added := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: config, DialContext: c.Dial})
	*t = append(*t, added)
	return added
}

func (t transports) closeIdle() {
	for _, transport := range t {
		transport.CloseIdleConnections()
	}
}

// kubeletCertificate is what the server shows to a kubelet. Files are read for each
// connection, so that they may be replaced while the server runs.
func kubeletCertificate(c *Config, own func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	if c.KubeletCertificate == "" {
		return own()
	}
	pair, err := tls.LoadX509KeyPair(c.KubeletCertificate, c.KubeletKey)
	return &pair, err
}
