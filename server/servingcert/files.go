package servingcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation"
)

// fromFile is a certificate whose files may change.
type fromFile struct {
	cert, key string
	explicit  []string // the names that it is for; none: those in the certificate
	current   atomic.Pointer[tls.Certificate]
}

func openFile(cert, key string, names []string) (*fromFile, error) {
	f := &fromFile{cert: cert, key: key, explicit: names}
	_, err := f.load()
	return f, err
}

// load reads the files anew. If they are no good, the certificate stays.
func (f *fromFile) load() (changed bool, err error) {
	certPEM, err := os.ReadFile(f.cert)
	if err != nil {
		return false, err
	}
	keyPEM, err := os.ReadFile(f.key)
	if err != nil {
		return false, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return false, fmt.Errorf("%s and %s: %w", f.cert, f.key, err)
	}
	if old := f.current.Load(); old != nil && slices.EqualFunc(old.Certificate, pair.Certificate, bytes.Equal) {
		return false, nil
	}
	f.current.Store(&pair)
	return true, nil
}

// names has certificates by the names that clients ask for, with * for the first part of some.
type names map[string]*tls.Certificate

// index takes up the certificates as they are now. As upstream has it, names that were given
// count for more than names in certificates, and earlier certificates for more than later ones
// (apiserver/pkg/server/dynamiccertificates).
func (c *Chooser) index() {
	c.indexing.Lock()
	defer c.indexing.Unlock()
	all := names{}
	for _, f := range slices.Backward(c.named) {
		if len(f.explicit) == 0 {
			all.add(f, namesIn(f.current.Load().Leaf))
		}
	}
	for _, f := range slices.Backward(c.named) {
		all.add(f, f.explicit)
	}
	c.names.Store(&all)
}

func (n names) add(f *fromFile, list []string) {
	for _, name := range list {
		n[strings.ToLower(name)] = f.current.Load()
	}
}

// find returns nil if no certificate is for name.
func (n names) find(name string) *tls.Certificate {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if found := n[name]; found != nil || net.ParseIP(name) != nil {
		return found
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		return n["*."+rest]
	}
	return n["*"]
}

// namesIn leaves out addresses: no client asks for one by name.
func namesIn(c *x509.Certificate) []string {
	list := slices.Clone(c.DNSNames)
	cn := c.Subject.CommonName
	if net.ParseIP(cn) == nil && (cn == "*" || len(validation.IsDNS1123Subdomain(strings.TrimPrefix(cn, "*."))) == 0) {
		list = append(list, cn)
	}
	return list
}
