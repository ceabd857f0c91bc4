package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
)

// FrontProxyName is the common name by which extension servers know this server; kubeadm
// has the same.
const FrontProxyName = "front-proxy-client"

// frontProxyAuthority is the name of the files of the authority that extension servers trust, and
// its common name.
const frontProxyAuthority = "front-proxy-ca"

// frontProxy proves to extension servers that a request comes from this server, so that they
// believe the headers in which it names the user. It has an authority of its own: the
// authority of clients must not let a client name another user.
// https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
type frontProxy struct {
	ca, client *pair // nil until they are asked for
}

// FrontProxyCA returns the certificate, in PEM, of the authority that has signed what
// FrontProxy returns.
func (p *PKI) FrontProxyCA() ([]byte, error) {
	front, err := p.frontProxy()
	if err != nil {
		return nil, err
	}
	return front.ca.certPEM, nil
}

// FrontProxy returns the certificate to show to extension servers.
func (p *PKI) FrontProxy() (*tls.Certificate, error) {
	front, err := p.frontProxy()
	if err != nil {
		return nil, err
	}
	return &front.client.tls, nil
}

// frontProxy makes the pairs at their first use, which keeps the start short.
func (p *PKI) frontProxy() (frontProxy, error) {
	p.mu.RLock()
	front := p.front
	p.mu.RUnlock()
	if front.client != nil {
		return front, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.renewFrontProxy()
	return p.front, err
}

// renewFrontProxy is called with p.mu held. Unlike the authority of clients, this authority is
// made anew when its files are spoiled: extension servers read it from the cluster.
func (p *PKI) renewFrontProxy() error {
	ca, _, err := p.ensure(frontProxyAuthority, p.front.ca, frontProxyAuthorityTemplate(), nil)
	if err != nil {
		return fmt.Errorf("front proxy: %w", err)
	}
	client, _, err := p.ensure(FrontProxyName, p.front.client, clientTemplate(FrontProxyName), ca)
	if err != nil {
		return fmt.Errorf("front proxy: %w", err)
	}
	p.front = frontProxy{ca, client}
	return nil
}

func frontProxyAuthorityTemplate() *x509.Certificate {
	t := authorityTemplate()
	t.Subject = pkix.Name{CommonName: frontProxyAuthority}
	return t
}
