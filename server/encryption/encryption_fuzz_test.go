package encryption_test

import (
	"bytes"
	"testing"

	"github.com/plinth-io/plinth/server/encryption"
)

// FuzzFromStorage reads what somebody has written into the database: nothing panics, what is
// encrypted by a provider with authentication cannot be changed, and what is stored is read again.
func FuzzFromStorage(f *testing.F) {
	const at = secretKeys + "a"
	sealed := []byte(`{"a":"b"}`) // the only value that there is in encrypted form
	var all []*encryption.Providers
	for _, provider := range []string{"aesgcm a", "aescbc a", "secretbox a", "identity"} {
		p, err := encryption.Open(encryption.Options{ConfigFile: configFile(f, secretsBy(provider, "identity"))}, "")
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(p.Close)
		all = append(all, p)
		stored, err := p.ToStorage(f.Context(), at, sealed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stored)
		f.Add(stored[:len(stored)/2])
	}
	f.Add([]byte("k8s:enc:kms:v2:vault:\x0a\x00"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		for _, p := range all {
			got, _, err := p.FromStorage(t.Context(), at, stored)
			for _, provider := range []string{"k8s:enc:aesgcm:", "k8s:enc:secretbox:"} {
				if err == nil && bytes.HasPrefix(stored, []byte(provider)) && !bytes.Equal(got, sealed) {
					t.Errorf("%q was read as %q", stored, got)
				}
			}
			again, err := p.ToStorage(t.Context(), at, stored)
			if err != nil {
				continue
			}
			if back, _, err := p.FromStorage(t.Context(), at, again); !bytes.HasPrefix(stored, []byte("k8s:enc:")) && (err != nil || !bytes.Equal(back, stored)) {
				t.Errorf("%q comes back as %q: %v", stored, back, err)
			}
		}
	})
}
