package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

// The signer's key, its password, and what a file of checksums is called.
const (
	keyVariable      = "PLINTH_SIGNING_KEY"      // path of a secret key of minisign
	passwordVariable = "PLINTH_SIGNING_PASSWORD" // if it is encrypted
	checksums        = "SHA256SUMS"
)

// sign writes install.sh with the key that signs, the checksums of all files, and their signature.
func (r *release) sign() error {
	key, err := signingKey()
	if err != nil {
		return err
	}
	public, ok := key.Public().(minisign.PublicKey)
	if !ok {
		return fmt.Errorf("the key in %s has no public part", keyVariable)
	}
	text, err := public.MarshalText()
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(r.dist, product+".pub"), append(bytes.TrimSpace(text), '\n')); err != nil {
		return err
	}
	if err := r.writeInstaller(public); err != nil {
		return err
	}
	sums, err := r.sums()
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(r.dist, checksums), sums); err != nil {
		return err
	}
	reader := minisign.NewReader(bytes.NewReader(sums))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return err
	}
	signature := reader.SignWithComments(key, product+" "+r.version, "signature of "+checksums)
	return writeFile(filepath.Join(r.dist, checksums+".minisig"), append(bytes.TrimSpace(signature), '\n'))
}

// signingKey returns the key that the environment names, or makes one that is forgotten.
func signingKey() (minisign.PrivateKey, error) {
	file := os.Getenv(keyVariable)
	if file == "" {
		log.Printf("%s is not set: this build is signed with a key of its own, which is then forgotten; do not publish it", keyVariable)
		_, key, err := minisign.GenerateKey(rand.Reader)
		return key, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return minisign.PrivateKey{}, fmt.Errorf("%s: %w", keyVariable, err)
	}
	if minisign.IsEncrypted(text) {
		key, err := minisign.DecryptKey(os.Getenv(passwordVariable), text)
		if err != nil {
			return key, fmt.Errorf("%s: the key cannot be decrypted with the password in %s: %w", keyVariable, passwordVariable, err)
		}
		return key, nil
	}
	var key minisign.PrivateKey
	err = key.UnmarshalText(text)
	return key, err
}

// writeInstaller writes install.sh with the version and the key in it.
func (r *release) writeInstaller(public minisign.PublicKey) error {
	text, err := os.ReadFile(filepath.Join(r.root, "install.sh"))
	if err != nil {
		return err
	}
	var names []string
	for _, program := range programs {
		names = append(names, program.Name)
	}
	for line, value := range map[string]string{"version=": r.version, "public_key=": public.String(), "programs=": strings.Join(names, " ")} {
		before, after, found := bytes.Cut(text, []byte("\n"+line))
		_, rest, ended := bytes.Cut(after, []byte("\n"))
		if !found || !ended {
			return fmt.Errorf("install.sh has no line that begins with %s", line)
		}
		text = fmt.Appendf(nil, "%s\n%s%q\n%s", before, line, value, rest)
	}
	file := filepath.Join(r.dist, "install.sh")
	return cmp.Or(writeFile(file, text), os.Chmod(file, 0o755))
}

// sums returns the checksums of all files in dist, in sha256sum's form.
func (r *release) sums() ([]byte, error) {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, entry := range entries {
		sum, err := checksum(filepath.Join(r.dist, entry.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, entry.Name())
	}
	return b.Bytes(), nil
}
