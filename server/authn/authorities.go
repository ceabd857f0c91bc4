package authn

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"

	"k8s.io/client-go/util/cert"
)

// trusted are the authorities at one time. A value is never changed: what a Conn has found out
// by one value is void once there is another.
type trusted struct {
	clients *x509.CertPool
	proxies *x509.CertPool // nil: no front proxy is trusted
}

// bundle is a file with the certificates of authorities.
type bundle struct {
	purpose, file string
	content       atomic.Pointer[[]byte] // the last one that could be used
	refused       atomic.Bool            // the file has changed and cannot be used
}

// openBundle returns nil if file is empty.
func openBundle(purpose, file string) (*bundle, error) {
	if file == "" {
		return nil, nil
	}
	b := &bundle{purpose: purpose, file: file}
	_, err := b.load()
	return b, err
}

// load reads the file anew. If it cannot be used, the content stays.
func (b *bundle) load() (changed bool, err error) {
	text, err := os.ReadFile(b.file)
	if err != nil {
		return false, fmt.Errorf("unable to load %s: %w", b.purpose, err)
	}
	if old := b.content.Load(); old != nil && bytes.Equal(*old, text) {
		return false, nil
	}
	if _, err := cert.NewPoolFromBytes(text); err != nil {
		return false, fmt.Errorf("unable to load %s: %s: %w", b.purpose, b.file, err)
	}
	b.content.Store(&text)
	return true, nil
}

// pem returns the content; nil if there is no file.
func (b *bundle) pem() []byte {
	if b == nil {
		return nil
	}
	return *b.content.Load()
}

// addTo adds the certificates to pool.
func (b *bundle) addTo(pool *x509.CertPool) *x509.CertPool {
	if b != nil {
		pool.AppendCertsFromPEM(b.pem())
	}
	return pool
}

// ClientCAs returns the certificates of authorities of clients besides the server's own, in PEM.
func (a *Authenticator) ClientCAs() []byte { return a.clients.pem() }

// ProxyCAs returns the certificates of authorities of front proxies, in PEM.
func (a *Authenticator) ProxyCAs() []byte {
	if a.proxies == nil {
		return nil
	}
	return a.proxies.pem()
}

// ProxyHeaders says how front proxies name users; nil if none is trusted.
func (a *Authenticator) ProxyHeaders() *ProxyOptions {
	if a.proxies == nil {
		return nil
	}
	return a.proxies.o
}
