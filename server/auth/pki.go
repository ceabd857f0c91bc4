package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// AdminName is the user of the admin's client certificate; kubeadm has the same.
const AdminName = "kubernetes-admin"

// authority is the name of the files of the one that knows clients.
const authority = "ca"

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced. A server that
	// is started rarely has this long to run before its clients notice.
	renewBefore = 90 * 24 * time.Hour
)

// ServiceNames are the names by which pods of a cluster reach its API server.
var ServiceNames = []string{
	"kubernetes",
	"kubernetes.default",
	"kubernetes.default.svc",
	"kubernetes.default.svc.cluster.local",
}

// PKI is a certificate authority with a serving certificate and an admin's client
// certificate. With a directory all of them are files:
//
//	ca.crt, ca.key                the authority; whoever has its key is admin
//	apiserver.crt, apiserver.key  what the listener shows
//	admin.crt, admin.key          user kubernetes-admin in group system:masters
//	front-proxy-ca.crt, .key      the authority that extension servers trust
//	front-proxy-client.crt, .key  what the server shows to them
//	apiserver-kubelet-client.crt, .key  what the server shows to kubelets
//
// Keys are ECDSA P-256.
type PKI struct {
	dir   string // empty: kept in memory only
	names []string
	now   func() time.Time

	mu      sync.RWMutex // guards the pairs; they change when they are renewed
	ca      *pair
	serving *pair
	admin   *pair
	front   frontProxy
	kubelet *pair // nil until it is asked for
}

// OpenPKI loads the certificates in dir and makes those that are missing, near their
// end, not signed by the authority, or (the serving one) without one of names, which
// are DNS names and IP addresses. An authority of which a file is missing or spoiled is
// an error, not made anew. Directory and keys are made readable by their owner only. An empty dir keeps everything in memory.
func OpenPKI(dir string, names []string) (*PKI, error) {
	return openPKI(dir, names, time.Now)
}

func openPKI(dir string, names []string, now func() time.Time) (*PKI, error) {
	p := &PKI{dir: dir, names: normalize(names), now: now}
	if dir != "" {
		if err := privateDir(dir); err != nil {
			return nil, fmt.Errorf("open certificates: %w", err)
		}
	}
	if _, err := p.Renew(); err != nil {
		return nil, fmt.Errorf("open certificates: %w", err)
	}
	return p, nil
}

// Renew replaces what is near its end and says whether the admin's certificate or the
// authority changed, so that the kubeconfig must too. Connections that are open keep
// the certificate they were made with.
func (p *PKI) Renew() (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ca, admin bool
	if p.ca, ca, err = p.ensure(authority, p.ca, authorityTemplate(), nil); err != nil {
		return false, err
	}
	if p.serving, _, err = p.ensure("apiserver", p.serving, servingTemplate(p.names), p.ca); err != nil {
		return false, err
	}
	if p.admin, admin, err = p.ensure("admin", p.admin, adminTemplate(), p.ca); err != nil {
		return false, err
	}
	if p.front.client != nil {
		if err := p.renewFrontProxy(); err != nil {
			return false, err
		}
	}
	if p.kubelet != nil {
		if err := p.renewKubelet(); err != nil {
			return false, err
		}
	}
	return ca || admin, nil
}

// ensure returns current, or what the files of that name hold, if it will still do;
// else a new pair, which it writes to the files.
func (p *PKI) ensure(name string, current *pair, template *x509.Certificate, issuer *pair) (*pair, bool, error) {
	if current == nil && p.dir != "" {
		var err error
		current, err = readPair(p.base(name))
		// A leaf that cannot be read is made anew: a crash between the writes of its two
		// files leaves a key that does not match. The authority is never given up: every
		// kubeconfig that was handed out would be void.
		if err != nil && name == authority && !(errors.Is(err, os.ErrNotExist) && p.fresh()) {
			return nil, false, p.lost(err)
		}
	}
	if current != nil && current.serves(template, issuer, p.now()) {
		return current, false, nil
	}
	made, err := newPair(template, issuer, p.now())
	if err != nil {
		return nil, false, fmt.Errorf("make certificate %s: %w", name, err)
	}
	if p.dir != "" {
		if err := made.write(p.base(name)); err != nil {
			return nil, false, err
		}
	}
	return made, true, nil
}

// fresh tells whether there never was an authority here: certificates are written after
// their keys, so one that was not completed leaves a key at most.
func (p *PKI) fresh() bool {
	found, err := filepath.Glob(p.base("*.crt"))
	return err == nil && len(found) == 0
}

// lost says what to do about an authority that cannot be used.
func (p *PKI) lost(err error) error {
	return fmt.Errorf("%w; put the file back, or remove the directory %s to begin anew with another authority, "+
		"which makes every kubeconfig and client certificate of this one invalid", err, p.dir)
}

func (p *PKI) base(name string) string { return filepath.Join(p.dir, name) }

// CA returns the authority's certificate in PEM.
func (p *PKI) CA() []byte {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.ca.certPEM
}

// Admin returns the admin's client certificate and key in PEM.
func (p *PKI) Admin() (cert, key []byte) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.admin.certPEM, p.admin.keyPEM
}

// ClientCAs returns the pool that client certificates are verified against.
func (p *PKI) ClientCAs() *x509.CertPool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pool := x509.NewCertPool()
	pool.AddCert(p.ca.cert)
	return pool
}

// Serving is a tls.Config's GetCertificate.
func (p *PKI) Serving(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return &p.serving.tls, nil
}

// ServingNames returns what the serving certificate is valid for when the server
// listens on host: the machine itself, the names of the Service, and extra, among which
// should be the addresses of the Service.
func ServingNames(host string, extra []string) []string {
	names := append([]string{"localhost", "127.0.0.1", "::1"}, ServiceNames...)
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		names = append(names, host)
	}
	return append(names, extra...)
}

func normalize(names []string) []string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func authorityTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: "plinth-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
}

func servingTemplate(names []string) *x509.Certificate {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "plinth"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	return t
}

func adminTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: AdminName, Organization: []string{user.SystemPrivilegedGroup}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}
