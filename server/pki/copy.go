package pki

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
)

// ErrOtherAuthority says that a directory has another authority than the one that was to be copied there.
var ErrOtherAuthority = errors.New("another authority is there already")

// CopyAuthority copies the authority in from, which it only reads, to the directory to, so that a server there accepts the clients
// of a server here. It tells whether to had none before. A certificate of the same authority that to has already stays, because
// a server may have renewed it.
func CopyAuthority(from, to string) (copied bool, err error) {
	if !exists(filepath.Join(from, authority+".crt")) {
		return false, fmt.Errorf("%w in %s", ErrNoAuthority, from)
	}
	source, err := loadPair(filepath.Join(from, authority))
	if err != nil {
		return false, err
	}
	if !source.cert.IsCA {
		return false, fmt.Errorf("%s is not the certificate of an authority", filepath.Join(from, authority+".crt"))
	}
	base := filepath.Join(to, authority)
	if exists(base + ".crt") {
		there, err := loadPair(base)
		if err == nil && !bytes.Equal(there.cert.RawSubjectPublicKeyInfo, source.cert.RawSubjectPublicKeyInfo) {
			err = fmt.Errorf("%w, in %s", ErrOtherAuthority, to)
		}
		return false, err
	}
	if err := privateDir(to); err != nil {
		return false, err
	}
	return true, source.write(base)
}
