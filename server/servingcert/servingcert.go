// Package servingcert chooses the certificate that the server shows to a client: one from files
// that were given by flags, by the name that the client asks for, or the server's own. It takes up
// files that change. It must not know who the clients are.
package servingcert

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/server/files"
)

// Options are those of kube-apiserver's flags. The zero value is the server's own certificate.
type Options struct {
	// CertFile and KeyFile have the certificate to show, with the intermediate ones after it, and
	// its private key. The server's own is still shown to clients that ask for a name, or connect
	// to an address of this machine, that only that one has.
	CertFile, KeyFile string
	// SNI are more certificates, for clients that ask for one of their names.
	SNI []cliflag.NamedCertKey
	// MinVersion is the lowest version of TLS, such as VersionTLS13. Empty: VersionTLS12.
	MinVersion string
	// CipherSuites are the only ones to use, up to TLS 1.2. nil: Go's choice.
	CipherSuites []string
	// CurvePreferences are the only mechanisms of key exchange to use, by the numbers of Go's tls.CurveID, in any order.
	// nil: Go's choice.
	CurvePreferences []int32
}

// Check finds what can be known to be wrong without any I/O. Its errors name fields; see fielderr.
func (o *Options) Check() error {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return fielderr.Errorf("%v and %v belong together: give both or neither", fielderr.Name("CertFile"), fielderr.Name("KeyFile"))
	}
	return o.Apply(&tls.Config{})
}

// Apply sets what does not change while the server runs.
func (o *Options) Apply(c *tls.Config) error {
	version, err := cliflag.TLSVersion(o.MinVersion)
	if err != nil {
		return fielderr.Errorf("%v: %w", fielderr.Name("MinVersion"), err)
	}
	if o.MinVersion != "" {
		c.MinVersion = version
	}
	if c.CurvePreferences, err = cliflag.TLSCurvePreferences(o.CurvePreferences); err != nil {
		return fielderr.Errorf("%v: %w", fielderr.Name("CurvePreferences"), err)
	}
	if len(o.CipherSuites) == 0 {
		return nil
	}
	if c.CipherSuites, err = cliflag.TLSCipherSuites(o.CipherSuites); err != nil {
		return fielderr.Errorf("%v: %w", fielderr.Name("CipherSuites"), err)
	}
	if c.MinVersion < tls.VersionTLS13 && !slices.ContainsFunc(c.CipherSuites, neededByHTTP2) {
		return fielderr.Errorf("%v: HTTP/2 needs %s or %s: add one of them, or set %v to VersionTLS13", fielderr.Name("CipherSuites"),
			tls.CipherSuiteName(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256), tls.CipherSuiteName(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), fielderr.Name("MinVersion"))
	}
	return nil
}

// neededByHTTP2 is what net/http, as kube-apiserver, refuses to serve without.
func neededByHTTP2(suite uint16) bool {
	return suite == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 || suite == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
}

// Insecure returns which of the cipher suites are known to be weak.
func (o *Options) Insecure() (names []string) {
	weak := cliflag.InsecureTLSCiphers()
	for _, name := range o.CipherSuites {
		if _, ok := weak[name]; ok {
			names = append(names, name)
		}
	}
	return names
}

// Chooser chooses a certificate for each connection. Its methods are safe for concurrent use.
type Chooser struct {
	own   func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	files *fromFile   // nil: own alone
	named []*fromFile // SNI

	indexing sync.Mutex
	names    atomic.Pointer[names]
}

// Open reads the files that o names. own returns the server's own certificate.
func Open(o Options, own func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (*Chooser, error) {
	c := &Chooser{own: own}
	var err error
	if o.CertFile != "" {
		if c.files, err = openFile(o.CertFile, o.KeyFile, nil); err != nil {
			return nil, fielderr.Errorf("%v and %v: %w", fielderr.Name("CertFile"), fielderr.Name("KeyFile"), err)
		}
	}
	for _, pair := range o.SNI {
		f, err := openFile(pair.CertFile, pair.KeyFile, pair.Names)
		if err != nil {
			return nil, fielderr.Errorf("%v: %w", fielderr.Name("SNI"), err)
		}
		c.named = append(c.named, f)
	}
	c.index()
	return c, nil
}

// Run takes up files that change, until ctx ends. A certificate that is broken, or not its key's,
// does not replace a good one.
func (c *Chooser) Run(ctx context.Context, logger *slog.Logger) {
	var following sync.WaitGroup
	defer following.Wait()
	for _, f := range c.all() {
		following.Go(func() {
			files.Follow(ctx, logger, "serving certificate", []string{f.cert, f.key}, func() error {
				changed, err := f.load()
				if changed {
					c.index()
					logger.Info("took up a serving certificate", "file", f.cert, "ends", f.current.Load().Leaf.NotAfter)
				}
				return err
			})
		})
	}
}

// Ends returns when the certificates from files end, by the names of the files.
func (c *Chooser) Ends() map[string]time.Time {
	ends := map[string]time.Time{}
	for _, f := range c.all() {
		ends[f.cert] = f.current.Load().Leaf.NotAfter
	}
	return ends
}

func (c *Chooser) all() []*fromFile {
	if c.files == nil {
		return c.named
	}
	return append(slices.Clone(c.named), c.files)
}

// Certificate is a tls.Config's GetCertificate.
func (c *Chooser) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.files == nil && len(c.named) == 0 {
		return c.own(hello)
	}
	if found := c.names.Load().find(asked(hello)); found != nil {
		return found, nil
	}
	own, err := c.own(hello)
	if err != nil || c.files == nil {
		return own, err
	}
	given := c.files.current.Load()
	if name := asked(hello); given.Leaf.VerifyHostname(name) != nil && own.Leaf.VerifyHostname(name) == nil {
		return own, nil
	}
	return given, nil
}

// asked returns the name that the client asks for or, if it names none, the address that it has
// found. A client that was led here by another address is not noticed.
func asked(hello *tls.ClientHelloInfo) string {
	if hello.ServerName != "" || hello.Conn == nil {
		return hello.ServerName
	}
	host, _, _ := net.SplitHostPort(hello.Conn.LocalAddr().String())
	return host
}
