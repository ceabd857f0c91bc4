package pki

import (
	"crypto/tls"
	"fmt"
)

// KubeletClientName is the user by which kubelets know the server. They ask the server what that user
// may do; to the server itself the certificate names nobody, since a node may lead a request back to it.
const KubeletClientName = "plinth-kubelet-client"

// Kubelet returns the certificate that the server shows to kubelets, which accept it if their
// --client-ca-file is the authority's certificate. It is made at the first use.
// https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/
func (p *PKI) Kubelet() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.renewKubelet(); err != nil {
		return nil, err
	}
	return &p.kubelet.tls, nil
}

// renewKubelet is called with p.mu held.
func (p *PKI) renewKubelet() (err error) {
	if p.kubelet, _, err = p.ensure("apiserver-kubelet-client", p.kubelet, clientTemplate(KubeletClientName), p.ca); err != nil {
		return fmt.Errorf("certificate for kubelets: %w", err)
	}
	return nil
}
