package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/plinth-io/plinth/sqlstore/atomicfile"
)

// pair is a certificate with its private key.
type pair struct {
	cert    *x509.Certificate
	certPEM []byte
	keyPEM  []byte
	tls     tls.Certificate
}

// newPair signs a certificate for a new key.
func newPair(template *x509.Certificate, issuer *pair, now time.Time) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return signPair(template, key, issuer, now)
}

// signPair signs a certificate for a key; a nil issuer makes an authority that signs itself. A
// certificate ends when its template says so, and never after its authority.
func signPair(template *x509.Certificate, key crypto.Signer, issuer *pair, now time.Time) (_ *pair, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	// An hour back, for clients whose clock is behind.
	template.NotBefore = now.Add(-time.Hour)
	parent, signer := template, any(key)
	if issuer != nil {
		parent, signer = issuer.cert, issuer.tls.PrivateKey
		if template.NotAfter.After(parent.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return parsePair(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func parsePair(certPEM, keyPEM []byte) (*pair, error) {
	pairTLS, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	return &pair{cert: pairTLS.Leaf, certPEM: certPEM, keyPEM: keyPEM, tls: pairTLS}, nil
}

// serves tells whether p can be used until then in place of a new certificate made from template.
func (p *pair) serves(template *x509.Certificate, issuer *pair, now, until time.Time) bool {
	if now.Before(p.cert.NotBefore) || until.After(p.cert.NotAfter) {
		return false
	}
	if issuer != nil && p.cert.CheckSignatureFrom(issuer.cert) != nil {
		return false
	}
	return p.cert.Subject.String() == template.Subject.String() && p.covers(template)
}

func (p *pair) covers(template *x509.Certificate) bool {
	for _, name := range template.DNSNames {
		if !slices.Contains(p.cert.DNSNames, name) {
			return false
		}
	}
	for _, ip := range template.IPAddresses {
		if p.cert.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}

// readPair is loadPair, and removes others' permissions on the key.
func readPair(base string) (*pair, error) {
	p, err := loadPair(base)
	if exists(base + ".key") {
		if err := private(base+".key", 0o600); err != nil {
			return nil, err
		}
	}
	return p, err
}

// loadPair reads base.crt and base.key.
// The error wraps os.ErrNotExist if one of the files is missing.
func loadPair(base string) (*pair, error) {
	certPEM, err := os.ReadFile(base + ".crt")
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(base + ".key")
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if _, err := cert.ParseCertsPEM(certPEM); err != nil {
		return nil, fmt.Errorf("read certificate %s.crt: %w", base, err)
	}
	if _, err := keyutil.ParsePrivateKeyPEM(keyPEM); err != nil {
		return nil, fmt.Errorf("read key %s.key: %w", base, err)
	}
	p, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.crt and %s.key do not belong together: %w", base, base, err)
	}
	return p, nil
}

// write replaces base.key, then base.crt.
func (p *pair) write(base string) error {
	if err := atomicfile.Write(base+".key", p.keyPEM, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	if err := atomicfile.Write(base+".crt", p.certPEM, 0o644); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	return nil
}
