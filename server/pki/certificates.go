package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
)

// Certificate is what a directory has under one name, for those who look after it.
type Certificate struct {
	Name      string // of the files: apiserver
	Subject   string
	Authority string // the subject of who has signed it
	End       time.Time
	Err       error // why it cannot be used; the other fields may be empty then
}

// authorities are who signs which pair. Names that are not here sign themselves.
var authorities = map[string]string{
	"apiserver": authority, "admin": authority, "apiserver-kubelet-client": authority, serverFiles: authority, FrontProxyName: frontProxyAuthority,
}

// names are those of the pairs, in the order in which they are shown and renewed.
var names = []string{authority, "apiserver", "admin", "apiserver-kubelet-client", serverFiles, frontProxyAuthority, FrontProxyName}

// List returns the certificates in dir. A server makes some of them at their first use only;
// those that are not there are left out. List makes and changes nothing.
func List(dir string) (list []Certificate, err error) {
	if !exists(filepath.Join(dir, authority+".crt")) {
		return nil, fmt.Errorf("%w in %s", ErrNoAuthority, dir)
	}
	for _, name := range names {
		if base := filepath.Join(dir, name); exists(base+".crt") || exists(base+".key") {
			list = append(list, look(dir, name))
		}
	}
	return list, nil
}

// look reads one certificate, and tells whether it can be used.
func look(dir, name string) Certificate {
	c := Certificate{Name: name}
	base := filepath.Join(dir, name)
	text, err := os.ReadFile(base + ".crt")
	if err != nil {
		c.Err = err
		return c
	}
	found, err := cert.ParseCertsPEM(text)
	if err != nil {
		c.Err = fmt.Errorf("read certificate %s.crt: %w", base, err)
		return c
	}
	c.Subject, c.Authority, c.End = subject(found[0].Subject.Organization, found[0].Subject.CommonName), found[0].Issuer.CommonName, found[0].NotAfter
	pair, err := loadPair(base)
	if err == nil && authorities[name] != "" {
		err = signedBy(pair, filepath.Join(dir, authorities[name]))
	}
	c.Err = err
	return c
}

// subject is how Kubernetes reads a client certificate: the user, and its groups.
func subject(groups []string, user string) string {
	if len(groups) == 0 {
		return user
	}
	return user + " (" + strings.Join(groups, ", ") + ")"
}

func signedBy(p *pair, base string) error {
	text, err := os.ReadFile(base + ".crt")
	if err != nil {
		return err
	}
	issuer, err := cert.ParseCertsPEM(text)
	if err != nil {
		return fmt.Errorf("read certificate %s.crt: %w", base, err)
	}
	if p.cert.CheckSignatureFrom(issuer[0]) != nil {
		return fmt.Errorf("it is not signed by %s.crt", base)
	}
	return nil
}

// Renewable returns the names of the certificates in dir that are no authorities.
func Renewable(list []Certificate) (out []string) {
	for _, c := range list {
		if authorities[c.Name] != "" {
			out = append(out, c.Name)
		}
	}
	return out
}

// RenewFiles replaces certificates in dir by new ones that say the same and have new keys, and
// returns when these end. An authority that is named keeps its key, so that what it has signed stays
// valid. A server that runs takes the files up by itself.
func RenewFiles(dir string, chosen []string) (ends map[string]time.Time, err error) {
	ends = map[string]time.Time{}
	for _, name := range names { // authorities before what they sign
		if !slices.Contains(chosen, name) {
			continue
		}
		made, err := renewPair(dir, name, time.Now())
		if err == nil {
			err = made.write(filepath.Join(dir, name))
		}
		if err != nil {
			return ends, fmt.Errorf("renew %s: %w", name, err)
		}
		ends[name] = made.cert.NotAfter
	}
	return ends, nil
}

// renewPair makes a pair that says what the one of that name says.
func renewPair(dir, name string, now time.Time) (*pair, error) {
	old, err := loadPair(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		Subject: old.cert.Subject, KeyUsage: old.cert.KeyUsage, ExtKeyUsage: old.cert.ExtKeyUsage,
		DNSNames: old.cert.DNSNames, IPAddresses: old.cert.IPAddresses,
		BasicConstraintsValid: old.cert.IsCA, IsCA: old.cert.IsCA,
	}
	issuer := authorities[name]
	if issuer == "" {
		key, ok := old.tls.PrivateKey.(crypto.Signer)
		if !ok {
			return nil, errors.New("its key cannot sign")
		}
		t.NotAfter = now.Add(DefaultLives.Authority)
		return signPair(t, key, nil, now)
	}
	signer, err := loadPair(filepath.Join(dir, issuer))
	if err != nil {
		return nil, err
	}
	t.NotAfter = now.Add(DefaultLives.Certificate)
	return newPair(t, signer, now)
}

// ServesName tells whether the serving certificate in dir is valid for a DNS name or IP address. It
// is taken to be if it cannot be read.
func ServesName(dir, name string) bool {
	serving, err := loadPair(filepath.Join(dir, "apiserver"))
	return err != nil || serving.cert.VerifyHostname(name) == nil
}

// Names returns all names that a certificate may have.
func Names() []string { return slices.Clone(names) }
