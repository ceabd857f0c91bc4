package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/util/keyutil"

	"github.com/plinth-io/plinth/sqlstore/atomicfile"
)

// SigningKey returns the private key that tokens of service accounts are signed with:
// ECDSA P-256, in the file sa.key, as kubeadm calls it. The key is made if the file is
// missing. If the file cannot be read, SigningKey fails: a new key would make every token that
// was handed out invalid.
func (p *PKI) SigningKey() (any, error) {
	if p.dir == "" {
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	path := p.base("sa.key")
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeSigningKey(path)
	}
	if err == nil {
		err = private(path, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of service accounts: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of service accounts: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return nil, fmt.Errorf("read the key of service accounts: %s: %w; put the file back, "+
			"or remove it to begin anew: then tokens signed with it are invalid, unless its public half is believed from elsewhere", path, err)
	}
	return key, nil
}

func makeSigningKey(path string) (any, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err == nil {
		err = atomicfile.Write(path, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("make the key of service accounts: %w", err)
	}
	return key, nil
}
