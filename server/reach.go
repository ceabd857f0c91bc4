package server

import (
	"crypto/tls"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// NodeAddressTypes is what Config.KubeletAddressTypes is by default, as in kube-apiserver.
var NodeAddressTypes = []string{
	string(corev1.NodeHostName), string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
	string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
}

// reach is how this server gets at nodes and at what runs on them. It connects to nothing.
func (s *Server) reach() (builtin.Reach, error) {
	config := &tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.kubeletCertificate() },
		InsecureSkipVerify:   true,
	}
	unverified := s.outbound(config)
	verified := unverified
	if s.config.KubeletCA != "" {
		pool, err := cert.NewPool(s.config.KubeletCA)
		if err != nil {
			return builtin.Reach{}, configError("authority of kubelets: %w", err)
		}
		config = config.Clone()
		config.RootCAs, config.InsecureSkipVerify = pool, false
		verified = s.outbound(config)
	}
	reach := builtin.Reach{
		// Pods are reached by their addresses, which are in no certificate.
		Proxy:           s.outbound(&tls.Config{InsecureSkipVerify: true}),
		Kubelet:         verified,
		InsecureKubelet: unverified,
	}
	for _, t := range s.config.KubeletAddressTypes {
		reach.Addresses = append(reach.Addresses, corev1.NodeAddressType(t))
	}
	return reach, nil
}

// outbound is a transport that stopServing closes.
func (s *Server) outbound(config *tls.Config) *http.Transport {
	t := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: config, DialContext: s.config.Dial})
	s.transports = append(s.transports, t)
	return t
}

// kubeletCertificate is what the server shows to a kubelet. Files are read for each
// connection, so that they may be replaced while the server runs.
func (s *Server) kubeletCertificate() (*tls.Certificate, error) {
	if s.config.KubeletCertificate == "" {
		return s.pki.Kubelet()
	}
	pair, err := tls.LoadX509KeyPair(s.config.KubeletCertificate, s.config.KubeletKey)
	return &pair, err
}

// checkKubelets checks what has to do with kubelets.
func (c *Config) checkKubelets() error {
	if (c.KubeletCertificate == "") != (c.KubeletKey == "") {
		return configError("a certificate for kubelets needs its key: give both or neither")
	}
	if c.KubeletCertificate != "" {
		if _, err := tls.LoadX509KeyPair(c.KubeletCertificate, c.KubeletKey); err != nil {
			return configError("certificate for kubelets: %w", err)
		}
	}
	for _, t := range c.KubeletAddressTypes {
		if !slices.Contains(NodeAddressTypes, t) {
			return configError("node address type %q: write some of %v", t, NodeAddressTypes)
		}
	}
	return nil
}
