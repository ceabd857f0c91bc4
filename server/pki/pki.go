// Package pki has the certificates and keys that plinth makes for itself: its authority, the
// certificates of its listener, of its admin, and of itself as a client of kubelets and extension
// servers; and the kubeconfig of the admin. It owns their files. It must not know who is a
// client, or what a client may do.
package pki

import (
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
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

// authority is the name of the files of the authority that signs client certificates.
const authority = "ca"

// Lives says how long certificates live.
type Lives struct {
	Authority, Certificate time.Duration
	// RenewBefore is how long before its end a certificate is replaced. A server that
	// is started rarely has this long to run before its clients notice.
	RenewBefore time.Duration
}

const day = 24 * time.Hour

// DefaultLives are those of every server but a test's.
var DefaultLives = Lives{Authority: 3650 * day, Certificate: 365 * day, RenewBefore: 90 * day}

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
//	apiserver-peer-client.crt, .key     what the server shows to others on the same database
//
// Keys are ECDSA P-256.
type PKI struct {
	dir   string // empty: kept in memory only
	names []string
	lives Lives
	now   func() time.Time

	mu      sync.RWMutex // guards the pairs; they change when they are renewed
	ca      *pair
	serving *pair
	admin   *pair
	front   frontProxy
	kubelet *pair // nil until it is asked for
	peer    *pair // nil until it is asked for
	made    []string
	taken   []string          // pairs that somebody else has put into the directory
	stamps  map[string]string // of the files that were read or written, by name; see stamp

	unwritten error // why a certificate that was made is in memory only
}

// Open loads the certificates in dir. It makes a certificate anew if it is missing, near
// its end, not signed by the authority, or, for the serving certificate, without one of names,
// which are DNS names and IP addresses. If a file of the authority is missing or spoiled,
// Open fails. It makes the directory and the keys readable by their owner only. If dir is
// empty, everything is in memory.
func Open(dir string, names []string) (*PKI, error) {
	return OpenFor(dir, names, DefaultLives)
}

// OpenFor is Open with other lives, for tests.
func OpenFor(dir string, names []string, lives Lives) (*PKI, error) {
	return open(dir, names, lives, time.Now)
}

func open(dir string, names []string, lives Lives, now func() time.Time) (*PKI, error) {
	p := &PKI{dir: dir, names: normalize(names), lives: lives, now: now, stamps: map[string]string{}}
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

// Unwritten returns why the newest certificates are not in the directory, or nil.
func (p *PKI) Unwritten() error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.unwritten
}

// Renew replaces certificates that are near their end, and takes up those that somebody else has
// renewed in the directory. An authority keeps its key, so that the certificates that it has signed
// stay valid. Renew tells whether the authority or the admin's certificate has changed, so that the
// kubeconfig must be written again. Open connections keep their certificate.
func (p *PKI) Renew() (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unwritten = nil
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
	if p.peer != nil {
		if err := p.renewPeer(); err != nil {
			return false, err
		}
	}
	return ca || admin, nil
}

// Made returns the names of the certificates that were made since it was called last.
func (p *PKI) Made() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	names, p.made = p.made, nil
	return names
}

// Taken returns the names of the certificates that were taken up since it was called last.
func (p *PKI) Taken() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	names, p.taken = p.taken, nil
	return names
}

// ensure returns the pair in the files of that name, or current, if it can still be used;
// else a new pair, which it writes to the files. It tells whether the pair is another than
// current. With an error it returns current, which stays in use.
func (p *PKI) ensure(name string, current *pair, template *x509.Certificate, issuer *pair) (*pair, bool, error) {
	there, err := p.find(name, current)
	// A leaf that cannot be read is made anew: a crash between the writes of its two
	// files leaves a key that does not match. The authority is never given up: every
	// kubeconfig that was handed out would be void.
	if err != nil && current == nil && name == authority && !(errors.Is(err, os.ErrNotExist) && p.fresh()) {
		return current, false, p.lost(err)
	}
	now := p.now()
	until := now.Add(p.lives.RenewBefore)
	if there != nil && there.serves(template, issuer, now, until) {
		if current != nil && there != current {
			p.taken = append(p.taken, name)
		}
		return there, there != current, nil
	}
	if current != nil && current.serves(template, issuer, now, until) {
		return current, false, nil
	}
	made, err := p.makePair(template, there, issuer)
	if err != nil {
		return current, false, fmt.Errorf("make certificate %s: %w", name, err)
	}
	if p.dir != "" {
		err := made.write(p.base(name))
		p.stamps[name] = stamp(p.base(name))
		if err != nil {
			if current == nil && there == nil || name == authority {
				return current, false, err
			}
			// A full disk must not end a server: the next start makes the pair again.
			p.unwritten = fmt.Errorf("certificate %s is new and in memory only: %w", name, err)
		}
	}
	p.made = append(p.made, name)
	return made, true, nil
}

// makePair makes a pair in place of old, which may be nil.
func (p *PKI) makePair(template *x509.Certificate, old, issuer *pair) (*pair, error) {
	now := p.now()
	if issuer != nil {
		template.NotAfter = now.Add(p.lives.Certificate)
		return newPair(template, issuer, now)
	}
	template.NotAfter = now.Add(p.lives.Authority)
	if old != nil && old.cert.Subject.String() == template.Subject.String() {
		if key, ok := old.tls.PrivateKey.(crypto.Signer); ok {
			return signPair(template, key, nil, now)
		}
	}
	return newPair(template, nil, now)
}

// find returns the pair in the files of that name if they are not those of current, else current.
// An error is of the files; what is returned can be used all the same.
func (p *PKI) find(name string, current *pair) (*pair, error) {
	if p.dir == "" {
		return current, nil
	}
	now := stamp(p.base(name))
	if current != nil && p.stamps[name] == now {
		return current, nil
	}
	p.stamps[name] = now
	read, err := readPair(p.base(name))
	if err != nil || current != nil && read.cert.Equal(current.cert) {
		return current, err
	}
	return read, nil
}

// Due tells whether Renew has something to do. It reads no file.
func (p *PKI) Due() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	soon := p.now().Add(p.lives.RenewBefore)
	for name, pair := range p.pairs() {
		if pair != nil && (soon.After(pair.cert.NotAfter) || p.dir != "" && p.stamps[name] != stamp(p.base(name))) {
			return true
		}
	}
	return false
}

// pairs returns the pairs that are in use, and nil for others, by the names of their files. It is
// called with p.mu held.
func (p *PKI) pairs() map[string]*pair {
	return map[string]*pair{
		authority: p.ca, "apiserver": p.serving, "admin": p.admin, frontProxyAuthority: p.front.ca,
		FrontProxyName: p.front.client, "apiserver-kubelet-client": p.kubelet, serverFiles: p.peer,
	}
}

// fresh tells whether the directory never had an authority. Certificates are written after
// their keys, so a start that was cut off leaves a key at most.
func (p *PKI) fresh() bool {
	found, err := filepath.Glob(p.base("*.crt"))
	return err == nil && len(found) == 0
}

// lost says what to do about an authority that cannot be used.
func (p *PKI) lost(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return err // nothing is lost
	}
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

// Fingerprint names the authority: a part of the SHA-256 of its public key, which it keeps when it is renewed.
func (p *PKI) Fingerprint() string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	sum := sha256.Sum256(p.ca.cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:16])
}

// Admin returns the admin's client certificate and key in PEM.
func (p *PKI) Admin() (cert, key []byte) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.admin.certPEM, p.admin.keyPEM
}

// Ends returns when the certificates in use end, by the names of their files.
func (p *PKI) Ends() map[string]time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	ends := map[string]time.Time{}
	for name, pair := range p.pairs() {
		if pair != nil {
			ends[name] = pair.cert.NotAfter
		}
	}
	return ends
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

// servingName is the common name of what the listener shows.
const servingName = "plinth"

func servingTemplate(names []string) *x509.Certificate {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: servingName},
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
