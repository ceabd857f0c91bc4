package authn

import (
	"crypto/x509"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/server/pki"
)

// openPKI makes an authority in memory.
func openPKI(t testing.TB) *pki.PKI {
	t.Helper()
	p, err := pki.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// client makes the certificate of a user that ends after life.
func client(t testing.TB, p *pki.PKI, name string, life time.Duration) *x509.Certificate {
	t.Helper()
	made, _, err := p.Client(name, []string{"dev", "ops"}, life)
	if err != nil {
		t.Fatal(err)
	}
	return parse(made)
}

func admin(p *pki.PKI) *x509.Certificate {
	made, _ := p.Admin()
	return parse(made)
}

func serving(p *pki.PKI) *x509.Certificate {
	made, _ := p.Serving(nil)
	return made.Leaf
}

func parse(pem []byte) *x509.Certificate {
	list, err := cert.ParseCertsPEM(pem)
	if err != nil {
		panic(err)
	}
	return list[0]
}
