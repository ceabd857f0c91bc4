package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plinth-io/plinth/server/files"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/server/servingcert"
)

// etcdTLS is how clients are spoken to, and which are let in.
type etcdTLS struct {
	serving                servingcert.Options // certificate and ciphers
	trustedCA              string
	clientAuth, auto       bool
	validity               uint // years of the certificate of auto
	minVersion, maxVersion string

	chooser *servingcert.Chooser
	clients atomic.Pointer[x509.CertPool]
	own     *pki.PKI
}

func (t *etcdTLS) flags() []Flag {
	return []Flag{
		{Name: "cert-file", Set: text(&t.serving.CertFile, ""),
			Help: "`file` with the certificate to serve with, intermediate ones after it; read again when it changes"},
		{Name: "key-file", Set: text(&t.serving.KeyFile, ""),
			Help: "`file` with the private key of --cert-file"},
		{Name: "trusted-ca-file", Set: text(&t.trustedCA, ""),
			Help: "`file` with authorities: only clients with a certificate of theirs may connect; read again when it changes"},
		{Name: "client-cert-auth", Set: boolean(&t.clientAuth, false),
			Help: "accept only clients with a certificate of --trusted-ca-file"},
		{Name: "auto-tls", Set: boolean(&t.auto, false),
			Help: "serve with a certificate that plinth makes in the data directory; not with --cert-file"},
		{Name: "self-signed-cert-validity", Set: unsigned(&t.validity, 1), Check: t.checkValidity,
			Help: "`years` that the certificate of --auto-tls is valid for; it is renewed before"},
		etcdMinVersion(t),
		{Name: "tls-max-version", Set: text(&t.maxVersion, ""), Check: knownVersion(&t.maxVersion), Complete: values("TLS1.2", "TLS1.3"),
			Help: "highest `version` of TLS: TLS1.2 or TLS1.3; by default the newest"},
		{Name: "cipher-suites", Set: list(&t.serving.CipherSuites, nil),
			Help: "`names` of the cipher suites up to TLS 1.2, by Go's names, separated by commas; by default Go's choice"},
	}
}

func etcdMinVersion(t *etcdTLS) Flag {
	f := tlsMinVersionFlag(&t.minVersion, "TLS1.2", "TLS1.2 or TLS1.3")
	f.For, f.Check, f.Complete = &t.serving.MinVersion, knownVersion(&t.minVersion), values("TLS1.2", "TLS1.3")
	return f
}

// knownVersion is a Flag's Check.
func knownVersion(version *string) func() string {
	return func() string {
		if _, ok := tlsVersions[*version]; !ok {
			return fmt.Sprintf(": %q: write TLS1.2 or TLS1.3", *version)
		}
		return ""
	}
}

func (t *etcdTLS) checkValidity() string {
	if t.validity == 0 || t.validity > 100 {
		return fmt.Sprintf(": %d: write a number of years from 1 to 100", t.validity)
	}
	return ""
}

// given tells whether there is to be a certificate.
func (t *etcdTLS) given() bool { return t.auto || t.serving.CertFile != "" }

// tlsVersions are etcd's names.
var tlsVersions = map[string]uint16{"": 0, "TLS1.2": tls.VersionTLS12, "TLS1.3": tls.VersionTLS13}

func (t *etcdTLS) check() error {
	lowest, highest := tlsVersions[t.minVersion], tlsVersions[t.maxVersion]
	switch {
	case t.serving.KeyFile == "" && t.serving.CertFile != "":
		return usagef("--cert-file needs --key-file, the private key of its certificate")
	case t.serving.CertFile == "" && t.serving.KeyFile != "":
		return usagef("--key-file needs --cert-file, the certificate of its private key")
	case t.auto && t.serving.CertFile != "":
		return usagef("--auto-tls makes a certificate, and --cert-file names one: give one of the two")
	case t.clientAuth && t.trustedCA == "":
		return usagef("--client-cert-auth needs --trusted-ca-file, the authorities of clients")
	case highest != 0 && highest < max(lowest, tls.VersionTLS12):
		return usagef("--tls-max-version %s is below --tls-min-version %s", t.maxVersion, t.minVersion)
	case len(t.serving.CipherSuites) > 0 && lowest == tls.VersionTLS13:
		return usagef("--cipher-suites: TLS 1.3 has its own; leave the flag out, or set --tls-min-version to TLS1.2")
	}
	return (&servingcert.Options{CipherSuites: t.serving.CipherSuites}).Check()
}

// config reads the files, and makes the certificate of --auto-tls for hosts.
func (t *etcdTLS) config(dataDir string, hosts []string) (*tls.Config, error) {
	if !t.given() {
		return nil, nil
	}
	if t.auto {
		lives := pki.DefaultLives
		lives.Certificate = time.Duration(t.validity) * 365 * 24 * time.Hour
		lives.Authority = max(lives.Authority, lives.Certificate)
		var err error
		if t.own, err = pki.OpenFor(t.directory(dataDir), append(pki.ServingNames("", nil), hosts...), lives); err != nil {
			return nil, err
		}
	}
	var own func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	if own = noCertificate; t.own != nil {
		own = t.own.Serving
	}
	var err error
	if t.chooser, err = servingcert.Open(t.serving, own); err != nil {
		return nil, usagef("%w", err)
	}
	c := &tls.Config{
		MinVersion: max(tlsVersions[t.minVersion], tls.VersionTLS12), MaxVersion: tlsVersions[t.maxVersion],
		GetCertificate: t.chooser.Certificate,
	}
	if c.CipherSuites, err = cliflag.TLSCipherSuites(t.serving.CipherSuites); err != nil {
		return nil, usagef("--cipher-suites: %v", err)
	}
	if t.trustedCA != "" { // as in etcd, also without --client-cert-auth
		if err := t.loadClients(); err != nil {
			return nil, usagef("--trusted-ca-file: %v", err)
		}
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyConnection = t.verify
	}
	return c, nil
}

// noCertificate takes the place of one that plinth has made, where there is only one in files. It is
// for no name, so that it is never chosen.
func noCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &tls.Certificate{Leaf: &x509.Certificate{}}, nil
}

// directory is where the certificate of --auto-tls is.
func (t *etcdTLS) directory(dataDir string) string { return filepath.Join(dataDir, "etcd-pki") }

func (t *etcdTLS) loadClients() error {
	pem, err := os.ReadFile(t.trustedCA)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s has no certificate in PEM form", t.trustedCA)
	}
	t.clients.Store(pool)
	return nil
}

// letsOwnClientIn tells whether clients need a certificate and that of --auto-tls for a client is one
// that counts: --trusted-ca-file has the authority of --auto-tls.
func (t *etcdTLS) letsOwnClientIn() bool {
	if t.own == nil || t.trustedCA == "" {
		return false
	}
	pair, err := tls.X509KeyPair(t.own.Admin())
	return err == nil && t.verify(tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}}) == nil
}

// verify is a tls.Config's VerifyConnection. It is called for resumed connections, too, so that an
// authority that is removed has no say any more.
func (t *etcdTLS) verify(c tls.ConnectionState) error {
	if len(c.PeerCertificates) == 0 {
		return errors.New("the client has shown no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, between := range c.PeerCertificates[1:] {
		intermediates.AddCert(between)
	}
	_, err := c.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: t.clients.Load(), Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

// renewEvery is how often the certificate of --auto-tls is looked at.
const renewEvery = time.Hour

// run takes up files that change, and renews the certificate of --auto-tls, until ctx ends.
func (t *etcdTLS) run(ctx context.Context, logger *slog.Logger) {
	if t.chooser == nil {
		return
	}
	if t.trustedCA != "" {
		followed := make(chan struct{})
		defer func() { <-followed }()
		go func() {
			files.Follow(ctx, logger, "authorities of clients", []string{t.trustedCA}, t.loadClients)
			close(followed)
		}()
	}
	if t.own != nil {
		t.renew(ctx, logger)
		return
	}
	t.chooser.Run(ctx, logger)
}

func (t *etcdTLS) renew(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !t.own.Due() {
			continue
		}
		if _, err := t.own.Renew(); err != nil {
			logger.Error("the certificate cannot be renewed", "err", err)
		}
	}
}
