package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Servers on one database show each other a certificate of this name. It is no user.
const serverName = "plinth-server"

// serverFiles is the name of its files.
const serverFiles = "apiserver-peer-client"

// Peer returns the certificate that the server shows to others on the same database, which have the
// same authority. It is made at the first use.
func (p *PKI) Peer() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.renewPeer(); err != nil {
		return nil, err
	}
	return &p.peer.tls, nil
}

// renewPeer is called with p.mu held.
func (p *PKI) renewPeer() (err error) {
	if p.peer, _, err = p.ensure(serverFiles, p.peer, clientTemplate(serverName), p.ca); err != nil {
		return fmt.Errorf("certificate for other servers: %w", err)
	}
	return nil
}

// clientTemplate is for certificates of clients that are in no group.
func clientTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// IsPeer tells whether a client's certificate is that of a server on the same database. Older servers show
// each other theirs for kubelets, which is in system:masters.
func IsPeer(leaf *x509.Certificate) bool {
	switch leaf.Subject.CommonName {
	case serverName:
		return true
	case KubeletClientName:
		return slices.Contains(leaf.Subject.Organization, user.SystemPrivilegedGroup)
	}
	return false
}

// IsForOthers tells whether a client's certificate is one that this server, or another one with the same
// authorities, shows to kubelets or to extension servers.
func (p *PKI) IsForOthers(leaf *x509.Certificate) bool {
	switch leaf.Subject.CommonName {
	case KubeletClientName:
		return true
	case FrontProxyName: // as others call theirs, too
		p.mu.RLock()
		defer p.mu.RUnlock()
		return p.front.ca != nil && leaf.CheckSignatureFrom(p.front.ca.cert) == nil
	}
	return false
}

// Serves tells whether a certificate is one that this server, or another with the same authority, shows
// to its clients, unless it was given to it in files.
func (p *PKI) Serves(leaf *x509.Certificate) bool {
	if leaf.Subject.CommonName != servingName {
		return false
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return leaf.CheckSignatureFrom(p.ca.cert) == nil
}
