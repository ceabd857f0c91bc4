package tokens

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/sqlstore"
)

// keys are the public keys that tokens are verified by. It implements upstream's
// serviceaccount.PublicKeysGetter.
type keys struct {
	serviceaccount.PublicKeysGetter // of the key that signs and of files

	store *sqlstore.Store // has the keys of other servers; nil: their tokens are not accepted

	mu    sync.Mutex
	asked time.Time // when the database was last asked on behalf of an unknown key
}

func (t *Tokens) openKeys(shared bool) (*keys, error) {
	all := []any{t.key}
	for _, path := range t.o.KeyFiles {
		found, err := keyutil.PublicKeysFromFile(path)
		if err != nil {
			return nil, fielderr.Errorf("read the keys that verify tokens (%v): %w", fielderr.Name("KeyFiles"), err)
		}
		all = append(all, found...)
	}
	known, err := serviceaccount.StaticPublicKeysGetter(all)
	if err != nil {
		return nil, fmt.Errorf("keys that verify tokens: %w", err)
	}
	k := &keys{PublicKeysGetter: distinct{known}}
	if shared && len(t.o.KeyFiles) == 0 {
		k.store = t.store
	}
	return k, nil
}

// distinct returns each key once, also a key that signs and is in a file, too.
type distinct struct {
	serviceaccount.PublicKeysGetter
}

func (d distinct) GetPublicKeys(ctx context.Context, id string) (list []serviceaccount.PublicKey) {
	seen := map[string]bool{}
	for _, key := range d.PublicKeysGetter.GetPublicKeys(ctx, id) {
		if !seen[key.KeyID] {
			list = append(list, key)
		}
		seen[key.KeyID] = true
	}
	return list
}

// publishedAge is how long, in seconds, caches may keep a list of keys that grows when a
// server joins.
const publishedAge = 60

// GetCacheAgeMaxSeconds implements serviceaccount.PublicKeysGetter.
func (k *keys) GetCacheAgeMaxSeconds() int {
	if k.store != nil {
		return publishedAge
	}
	return k.PublicKeysGetter.GetCacheAgeMaxSeconds()
}

// GetPublicKeys returns the key of that id, or all keys if id is empty.
func (k *keys) GetPublicKeys(ctx context.Context, id string) []serviceaccount.PublicKey {
	found := k.find(ctx, id)
	if len(found) == 0 && k.ask(ctx) {
		found = k.find(ctx, id)
	}
	return found
}

// find is GetPublicKeys in memory.
func (k *keys) find(ctx context.Context, id string) []serviceaccount.PublicKey {
	known := k.PublicKeysGetter.GetPublicKeys(ctx, id)
	switch {
	case k.store == nil || id != "" && len(known) > 0:
		return known
	case id == "":
		return allPublished(k.store, known)
	}
	if key := findPublished(k.store, id); key != nil {
		return []serviceaccount.PublicKey{*key}
	}
	return nil
}

// askEvery is the least time between two questions to the database for an unknown key: a
// client can make up any number of them.
const askEvery = time.Second

// ask waits until the store has the keys of servers that have just started. It returns false
// if it did not ask the database.
func (k *keys) ask(ctx context.Context) bool {
	if k.store == nil {
		return false
	}
	k.mu.Lock()
	wait := time.Since(k.asked) < askEvery
	if !wait {
		k.asked = time.Now()
	}
	k.mu.Unlock()
	if wait {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := k.store.Sync(ctx)
	return err == nil
}
