package pki

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFrontProxy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	begun := time.Now()
	var last struct{ ca, client []byte }
	for _, test := range []struct {
		name     string
		later    time.Duration
		spoil    string
		ca, cert bool // kept
	}{
		{"new", 0, "", false, false},
		{"restart", 0, "", true, true},
		{"near the end of the certificate", 300 * day, "", true, false},
		{"spoiled authority", 300 * day, "front-proxy-ca.crt", false, false},
		{"spoiled certificate", 300 * day, "front-proxy-client.key", true, false},
		{"near the end of the authority", 3900 * day, "", false, false},
	} {
		if test.spoil != "" {
			if err := os.WriteFile(filepath.Join(dir, test.spoil), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := open(dir, nil, DefaultLives, func() time.Time { return begun.Add(test.later) })
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		ca, err := p.FrontProxyCA()
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		cert, err := p.FrontProxy()
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		der := cert.Certificate[0]
		if got := bytes.Equal(ca, last.ca); got != test.ca {
			t.Errorf("%s: authority kept: %v, want %v", test.name, got, test.ca)
		}
		if got := bytes.Equal(der, last.client); got != test.cert {
			t.Errorf("%s: certificate kept: %v, want %v", test.name, got, test.cert)
		}
		last.ca, last.client = ca, der

		options := x509.VerifyOptions{Roots: x509.NewCertPool(), CurrentTime: begun.Add(test.later), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		options.Roots.AppendCertsFromPEM(ca)
		if _, err := cert.Leaf.Verify(options); err != nil {
			t.Errorf("%s: extension servers don't believe it: %v", test.name, err)
		}
		// With it nobody is a client of this server.
		options.Roots = p.ClientCAs()
		if _, err := cert.Leaf.Verify(options); err == nil {
			t.Errorf("%s: it is signed by the authority of clients", test.name)
		}
	}
	if got := mode(t, filepath.Join(dir, "front-proxy-client.key")); got != 0o600 {
		t.Errorf("mode of the key is %v", got)
	}
}

// Certificates that are in use are renewed with all others.
func TestFrontProxyRenewed(t *testing.T) {
	now := time.Now()
	p, err := open("", nil, DefaultLives, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	before, err := p.FrontProxy()
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(300 * 24 * time.Hour)
	if _, err := p.Renew(); err != nil {
		t.Fatal(err)
	}
	after, err := p.FrontProxy()
	if err != nil || bytes.Equal(before.Certificate[0], after.Certificate[0]) {
		t.Errorf("not renewed: %v", err)
	}
}
