package tokens

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// publishedKeys is the resource of the log that has the public keys of all servers.
// No request reaches it.
var publishedKeys = object.Prefix(object.InternalGroup, "serviceaccountkeys")

const (
	// maxPublished bounds the number of keys: each server that starts with a new data directory
	// adds a key. The keys that were in use least recently are removed.
	maxPublished = 100
	// inUseEvery is how often a server says that its key is in use.
	inUseEvery = 24 * time.Hour
)

// published is an entry of the log, laid out as those of objects are.
type published struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Metadata   publishedMetadata `json:"metadata"`
	PublicKey  string            `json:"publicKey"` // PEM
	InUse      time.Time         `json:"inUse"`     // when a server last said that it signs with it
}

type publishedMetadata struct {
	Name string `json:"name"` // key ID
}

// Publish writes the public half of the key that signs to the database, for other servers,
// unless a server has done so within the last day.
func (t *Tokens) Publish(ctx context.Context) error {
	id, text, err := t.public()
	if err != nil {
		return fmt.Errorf("publish the key of tokens: %w", err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	value, err := json.Marshal(published{"ServiceAccountKey", "plinth.io/v1", publishedMetadata{id}, text, now})
	if err != nil {
		return fmt.Errorf("publish the key of tokens: %w", err)
	}
	never := func(error) bool { return false }
	err = t.store.Retry(ctx, publishedKeys+id, never, func(current *sqlstore.Entry) error {
		change := sqlstore.Change{Key: publishedKeys + id, Value: value}
		if current != nil {
			if p, err := parsePublished(current); err == nil && now.Sub(p.InUse) < inUseEvery {
				return nil
			}
			change.Expect = current.Revision
		}
		_, err := t.store.Commit(ctx, change)
		return err
	})
	if err != nil {
		return fmt.Errorf("publish the key of tokens: %w", err)
	}
	return t.forget(ctx)
}

// KeepPublished publishes the key again whenever that is due, until ctx ends. It logs the
// first of several failures in a row.
func (t *Tokens) KeepPublished(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(inUseEvery / 24)
	defer tick.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := t.Publish(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			logger.Warn("the key that tokens are signed with could not be published; it is tried again", "err", err)
		}
		failed = err != nil
	}
}

// public returns the ID of the key that signs, and its public half in PEM.
func (t *Tokens) public() (id, text string, err error) {
	one, err := serviceaccount.StaticPublicKeysGetter([]any{t.key})
	if err != nil {
		return "", "", err
	}
	key := one.GetPublicKeys(context.Background(), "")[0]
	der, err := x509.MarshalPKIXPublicKey(key.PublicKey)
	return key.KeyID, string(pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der})), err
}

// forget removes the keys that were in use least recently, if there are too many.
func (t *Tokens) forget(ctx context.Context) error {
	type old struct {
		entry *sqlstore.Entry
		inUse time.Time
	}
	var all []old
	eachPublished(t.store, func(e *sqlstore.Entry) {
		p, _ := parsePublished(e) // a key that cannot be read is the oldest
		all = append(all, old{e, p.InUse})
	})
	if len(all) <= maxPublished {
		return nil
	}
	slices.SortFunc(all, func(a, b old) int { return a.inUse.Compare(b.inUse) })
	for _, o := range all[:len(all)-maxPublished] {
		// If another server is quicker, the key is gone as well.
		if err := t.store.End(ctx, o.entry); err != nil {
			return fmt.Errorf("forget an old key of tokens: %w", err)
		}
	}
	return nil
}

func eachPublished(store *sqlstore.Store, f func(*sqlstore.Entry)) {
	from, to := changelog.RangeOf(publishedKeys)
	// In memory: there is no error.
	_ = store.Current(publishedKeys).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		f(e)
		return true
	})
}

func parsePublished(e *sqlstore.Entry) (p published, err error) {
	err = json.Unmarshal(e.Value, &p)
	return p, err
}

// keyID is the form of upstream's key IDs, which are hashes of keys.
var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// findPublished returns the key of that ID, nil if there is none. The ID may be a client's
// invention.
func findPublished(store *sqlstore.Store, id string) *serviceaccount.PublicKey {
	if !keyID.MatchString(id) {
		return nil
	}
	e := store.Get(publishedKeys + id)
	if e == nil {
		return nil
	}
	return publicKey(e)
}

// allPublished returns all keys besides those that are known.
func allPublished(store *sqlstore.Store, known []serviceaccount.PublicKey) []serviceaccount.PublicKey {
	all := slices.Clone(known)
	eachPublished(store, func(e *sqlstore.Entry) {
		key := publicKey(e)
		if key == nil || slices.ContainsFunc(known, func(k serviceaccount.PublicKey) bool { return k.KeyID == key.KeyID }) {
			return
		}
		all = append(all, *key)
	})
	return all
}

// publicKey returns the key of an entry, nil if the entry has no key of its own name.
func publicKey(e *sqlstore.Entry) *serviceaccount.PublicKey {
	p, err := parsePublished(e)
	if err != nil {
		return nil
	}
	found, err := keyutil.ParsePublicKeysPEM([]byte(p.PublicKey))
	if err != nil {
		return nil
	}
	getter, err := serviceaccount.StaticPublicKeysGetter(found)
	if err != nil {
		return nil
	}
	for _, key := range getter.GetPublicKeys(context.Background(), p.Metadata.Name) {
		return &key
	}
	return nil
}
