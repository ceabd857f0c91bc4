package storageversion_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

// keys encrypts Secrets, in name only, with the first of its keys, and decrypts with all of them.
type keys struct{ all atomic.Pointer[[]string] }

func (k *keys) set(names ...string) { k.all.Store(&names) }

func (k *keys) ToStorage(_ context.Context, key string, value []byte) ([]byte, error) {
	if names := *k.all.Load(); strings.Contains(key, "/secrets/") && len(names) > 0 {
		return append([]byte("enc:"+names[0]+":"), value...), nil
	}
	return value, nil
}

func (k *keys) FromStorage(_ context.Context, key string, stored []byte) ([]byte, bool, error) {
	names := *k.all.Load()
	if stored[0] == '{' {
		return stored, strings.Contains(key, "/secrets/") && len(names) > 0, nil
	}
	for i, name := range names {
		if value, ok := bytes.CutPrefix(stored, []byte("enc:"+name+":")); ok {
			return value, i > 0, nil
		}
	}
	return nil, false, errors.New("no key")
}

// Secrets are encrypted with today's key. One that cannot be decrypted stays as it is, keeps no other from being encrypted,
// and the migration does not succeed.
func TestMigrateEncrypts(t *testing.T) {
	k := &keys{}
	k.set()
	c := open(t, sqlstore.Options{Transformer: k})
	secret := func(name string) string {
		return `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"default","uid":"u"},"type":"Opaque"}`
	}
	const prefix = "/registry/core/secrets/default/"
	c.put(prefix+"plain", secret("plain"))
	k.set("one")
	c.put(prefix+"a", secret("a"))
	k.set("two", "one")
	c.put(prefix+"b", secret("b"))
	c.migrate("m", "", "secrets")
	c.says("m", "Running MigrationRunning The migration is running, 3 objects verified migrated", completed)
	if n := c.writes.Load(); n != 2 {
		t.Errorf("%d writes of two Secrets", n)
	}
	c.migrate("again", "", "secrets")
	c.says("again", "Running MigrationRunning The migration is running, 3 objects verified migrated", completed)
	if n := c.writes.Load(); n != 2 {
		t.Errorf("%d writes, two of which had an effect", n)
	}
}
