package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// TestShown looks at what is shown to others: no certificate is in a group.
func TestShown(t *testing.T) {
	p, other := mustOpen(t, "", []string{"a.example"}), mustOpen(t, "", []string{"a.example"})
	leaf := func(made *tls.Certificate, err error) *x509.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return made.Leaf
	}
	client := func(name string, groups ...string) *x509.Certificate {
		t.Helper()
		text, _, err := p.Client(name, groups, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		list, err := cert.ParseCertsPEM(text)
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	for _, c := range []struct {
		what                    string
		leaf                    *x509.Certificate
		peer, forOthers, serves bool
	}{
		{"for kubelets", leaf(p.Kubelet()), false, true, false},
		{"for other servers", leaf(p.Peer()), true, false, false},
		{"for extension servers", leaf(p.FrontProxy()), false, true, false},
		{"of another front proxy", leaf(other.FrontProxy()), false, false, false},
		{"of an older server for kubelets", client("plinth-kubelet-client", "system:masters"), true, true, false},
		{"the listener's", leaf(p.Serving(nil)), false, false, true},
		{"another listener's", leaf(other.Serving(nil)), false, false, false},
		{"a client's", client("plinth"), false, false, true}, // it is no listener's, but nobody listens with it
		{"the admin's", p.admin.cert, false, false, false},
		{"a user's", client("ann", "system:masters"), false, false, false},
	} {
		if got := IsPeer(c.leaf); got != c.peer {
			t.Errorf("%s is a peer's: %v", c.what, got)
		}
		if got := p.IsForOthers(c.leaf); got != c.forOthers {
			t.Errorf("%s is for others: %v", c.what, got)
		}
		if got := p.Serves(c.leaf); got != c.serves {
			t.Errorf("%s serves: %v", c.what, got)
		}
	}
	for _, shown := range []*x509.Certificate{leaf(p.Kubelet()), leaf(p.Peer()), leaf(p.FrontProxy())} {
		if groups := shown.Subject.Organization; len(groups) > 0 {
			t.Errorf("%s is in %v", shown.Subject.CommonName, groups)
		}
	}
}
