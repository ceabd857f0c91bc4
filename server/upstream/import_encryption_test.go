package upstream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// providersOf are the providers of a kube-apiserver's configuration, with a key each.
var providersOf = map[string]string{
	"aescbc":    "aescbc: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}",
	"aesgcm":    "aesgcm: {keys: [{name: b, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}",
	"secretbox": "secretbox: {keys: [{name: c, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}",
	"identity":  "identity: {}",
}

func encryptionOf(t *testing.T, names ...string) string {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"
	for _, name := range names {
		text += "  - " + providersOf[name] + "\n"
	}
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestImportEncryption reads what each provider has written, and writes it as the first one does.
func TestImportEncryption(t *testing.T) {
	const key, value = "/registry/secrets/n/a", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"n"},"type":"Opaque"}`
	for wrote := range providersOf {
		by := providers(t, encryptionOf(t, wrote))
		sealed, err := by.ToUpstream(t.Context(), secrets, key, []byte(value))
		must(t, err)
		if (string(sealed) == value) != (wrote == "identity") {
			t.Errorf("%s has written %q", wrote, sealed)
		}
		for first := range providersOf {
			t.Run(fmt.Sprintf("%s to %s", wrote, first), func(t *testing.T) {
				p := providers(t, encryptionOf(t, first, wrote))
				if first == wrote {
					p = by
				}
				log := openLog(t, logtest.SQLite(t))
				take(t, pairs{{Key: key, Value: sealed}}, log, p)
				head, err := log.Head(t.Context())
				must(t, err)
				rows, err := log.State(t.Context(), "", "\xff", head.Revision, 10)
				must(t, err)
				if len(rows) != 1 || rows[0].Key != "/registry/core/secrets/n/a" || !begins(rows[0].Value, first) {
					t.Fatalf("%+v", rows)
				}
				plain, _, err := p.FromStorage(t.Context(), rows[0].Key, rows[0].Value)
				if string(plain) != value {
					t.Errorf("%s, %v", plain, err)
				}
			})
		}
	}
}

// begins tells whether a value is stored as a provider does it.
func begins(value []byte, provider string) bool {
	if provider == "identity" {
		return strings.HasPrefix(string(value), `{"kind"`)
	}
	return strings.HasPrefix(string(value), "k8s:enc:"+provider+":")
}
