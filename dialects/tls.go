package dialects

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// mysqlTLS reads the parameters tls, tls_ca, tls_cert and tls_key.
func mysqlTLS(config *driver.Config, s *server) error {
	mode := s.params.Get("tls")
	switch mode {
	case "", "true", "false", "skip-verify", "preferred":
	default:
		return errors.New("mysql DSN: tls must be true, preferred, skip-verify or false")
	}
	roots, err := mysqlRoots(s.params.Get("tls_ca"))
	if err != nil {
		return err
	}
	own, err := mysqlCertificate(s.params.Get("tls_cert"), s.params.Get("tls_key"))
	if err != nil {
		return err
	}
	if roots == nil && own == nil {
		config.TLSConfig = mode
		return nil
	}
	if mode != "" && mode != "true" && (roots != nil || mode != "skip-verify") {
		return fmt.Errorf("mysql DSN: tls=%s does not go with tls_ca, tls_cert and tls_key; write tls=true", mode)
	}
	config.TLS = &tls.Config{
		RootCAs: roots, MinVersion: tls.VersionTLS12, Certificates: own,
		InsecureSkipVerify: mode == "skip-verify", // as the operator has asked for
	}
	return nil
}

func mysqlRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("mysql DSN: tls_ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("mysql DSN: tls_ca: the file has no certificate in PEM form")
	}
	return roots, nil
}

func mysqlCertificate(certificate, key string) ([]tls.Certificate, error) {
	if certificate == "" && key == "" {
		return nil, nil
	}
	if certificate == "" || key == "" {
		return nil, errors.New("mysql DSN: tls_cert and tls_key go together")
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("mysql DSN: tls_cert, tls_key: %w", err)
	}
	return []tls.Certificate{own}, nil
}

// Insecure says what is wrong with a connection to a database on another machine: it may be
// without TLS, or does not verify who answers. It returns the empty string for a good one, and
// for a database on this machine.
func Insecure(dsn string) string {
	switch Scheme(dsn) {
	case "postgres":
		if config, err := PostgresConfig(dsn, Options{}); err == nil && !here(config.Host) {
			return insecurePostgres(config)
		}
	case "mysql":
		_, rest, _ := strings.Cut(dsn, "://")
		o, _, err := parseMySQL(rest, Options{})
		if err != nil {
			return ""
		}
		for _, address := range o.Hosts {
			if host, _, _ := net.SplitHostPort(address); !here(host) {
				return insecureMySQL(o.Config)
			}
		}
	}
	return ""
}

// here tells whether a host is this machine, or a socket on it.
func here(host string) bool {
	return host == "" || host == "localhost" || strings.HasPrefix(host, "/") || net.ParseIP(host).IsLoopback()
}

func insecurePostgres(c *pgx.ConnConfig) string {
	plain := c.TLSConfig == nil
	for _, f := range c.Fallbacks {
		plain = plain || f.TLSConfig == nil
	}
	switch {
	case plain:
		return "the connection to the database may be without TLS; write sslmode=verify-full in the DSN, and sslrootcert if the authority is your own"
	case c.TLSConfig.InsecureSkipVerify && c.TLSConfig.VerifyPeerCertificate == nil:
		return "the database's certificate is not verified; write sslmode=verify-full in the DSN, and sslrootcert if the authority is your own"
	}
	return ""
}

func insecureMySQL(c *driver.Config) string {
	switch {
	case c.TLS == nil && (c.TLSConfig == "" || c.TLSConfig == "false" || c.TLSConfig == "preferred"):
		return "the connection to the database may be without TLS; write tls=true in the DSN, and tls_ca if the authority is your own"
	case c.TLSConfig == "skip-verify", c.TLS != nil && c.TLS.InsecureSkipVerify:
		return "the database's certificate is not verified; write tls=true in the DSN, and tls_ca if the authority is your own"
	}
	return ""
}
