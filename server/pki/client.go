package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Client signs a client certificate for a user and its groups, and returns it with its key, both
// in PEM. It ends after life, or with the authority.
func (p *PKI) Client(user string, groups []string, life time.Duration) (cert, key []byte, err error) {
	p.mu.RLock()
	ca, now := p.ca, p.now()
	p.mu.RUnlock()
	return ca.client(user, groups, life, now)
}

// client signs a client certificate with p, an authority.
func (p *pair) client(user string, groups []string, life time.Duration, now time.Time) (cert, key []byte, err error) {
	made, err := newPair(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotAfter:    now.Add(life),
	}, p, now)
	if err != nil {
		return nil, nil, err
	}
	return made.certPEM, made.keyPEM, nil
}

// Authority is the authority in the directory of a server, which may run meanwhile.
type Authority struct{ pair *pair }

// ErrNoAuthority is the error for a directory in which no server has run.
var ErrNoAuthority = errors.New("there is no authority")

// ReadAuthority reads the authority in dir. It makes and changes nothing.
func ReadAuthority(dir string) (*Authority, error) {
	base := filepath.Join(dir, authority)
	found, err := loadPair(base)
	if errors.Is(err, os.ErrNotExist) && !exists(base+".crt") {
		return nil, fmt.Errorf("%w in %s", ErrNoAuthority, dir)
	}
	if err != nil {
		return nil, err
	}
	if end := found.cert.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("the authority %s.crt has ended on %s; start plinth serve, which renews it", base, end.Format(time.DateOnly))
	}
	return &Authority{found}, nil
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return a.pair.certPEM }

// End returns when the authority ends.
func (a *Authority) End() time.Time { return a.pair.cert.NotAfter }

// Client does what PKI.Client does.
func (a *Authority) Client(user string, groups []string, life time.Duration) (cert, key []byte, err error) {
	return a.pair.client(user, groups, life, time.Now())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
