package dbserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// TLS has the files of an authority that a server's certificate is from.
type TLS struct {
	CA                               string // of the server's certificate
	ClientCertificate, ClientKey     string // which the server accepts
	OtherCA                          string // of nothing
	StrangerCertificate, StrangerKey string // of OtherCA
}

// UseTLS starts the server anew so that it takes TLS connections beside others, with a
// certificate for 127.0.0.1 only.
func (s *Server) UseTLS() (t TLS, err error) {
	dir := filepath.Join(s.dir, "tls")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return t, err
	}
	ca, err1 := newAuthority(dir, "ca")
	other, err2 := newAuthority(dir, "other")
	if err := errors.Join(err1, err2); err != nil {
		return t, err
	}
	t = TLS{CA: ca.file("crt"), OtherCA: other.file("crt"),
		ClientCertificate: filepath.Join(dir, "client.crt"), ClientKey: filepath.Join(dir, "client.key"),
		StrangerCertificate: filepath.Join(dir, "stranger.crt"), StrangerKey: filepath.Join(dir, "stranger.key"),
	}
	if err := errors.Join(ca.issue("server", net.IPv4(127, 0, 0, 1)), ca.issue("client", nil), other.issue("stranger", nil)); err != nil {
		return t, err
	}
	if s.cred != nil { // the server reads its key
		if err := os.Chown(filepath.Join(dir, "server.key"), int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return t, err
		}
	}
	if s.tls, err = s.tlsArguments(dir); err != nil {
		return t, err
	}
	s.Stop()
	return t, s.Start()
}

func (s *Server) tlsArguments(dir string) ([]string, error) {
	ca, crt, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	if s.kind.name == "mariadb" {
		return []string{"--ssl-ca=" + ca, "--ssl-cert=" + crt, "--ssl-key=" + key}, nil
	}
	// The role tls_user needs TLS, and the role cert_user a certificate of its own.
	hba := "hostssl all cert_user 127.0.0.1/32 trust clientcert=verify-ca\nhostnossl all cert_user,tls_user 127.0.0.1/32 reject\n" +
		"local all all trust\nhost all all 127.0.0.1/32 trust\n"
	return []string{"-c", "ssl=on", "-c", "ssl_ca_file=" + ca, "-c", "ssl_cert_file=" + crt, "-c", "ssl_key_file=" + key},
		os.WriteFile(filepath.Join(s.dir, "data", "pg_hba.conf"), []byte(hba), 0o644)
}

// authority signs certificates.
type authority struct {
	dir, name   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func (a *authority) file(kind string) string { return filepath.Join(a.dir, a.name+"."+kind) }

func newAuthority(dir, name string) (*authority, error) {
	a := &authority{dir: dir, name: name, certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	return a, a.write(name, a.certificate, a.key)
}

// issue signs a certificate of the authority; ip makes it one of a server.
func (a *authority) issue(name string, ip net.IP) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if ip != nil {
		c.IPAddresses, c.ExtKeyUsage = []net.IP{ip}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	return a.write(name, c, key)
}

func (a *authority) write(name string, c *x509.Certificate, key *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(a.dir, name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(filepath.Join(a.dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// WithHost returns dsn with another name for its host.
func WithHost(dsn, host string) string { return strings.Replace(dsn, "@127.0.0.1:", "@"+host+":", 1) }
