package upstream_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestEventLeases exports Events that share leases, at most a thousand one.
func TestEventLeases(t *testing.T) {
	const objects = 2500
	log := openLog(t, logtest.SQLite(t))
	var batch []changelog.Change
	for i := range objects {
		name := fmt.Sprintf("e%04d", i)
		batch = append(batch, changelog.Change{
			Key:   "/registry/core/events/n/" + name,
			Value: fmt.Appendf(nil, `{"kind":"Event","apiVersion":"v1","metadata":{"name":%q,"namespace":"n"}}`, name),
		})
	}
	_, err := log.Append(t.Context(), batch)
	must(t, err)
	file := filepath.Join(t.TempDir(), "export.db")
	to, err := upstream.CreateSnapshot(file)
	must(t, err)
	give(t, log, to, providers(t, ""))
	db, err := bbolt.Open(file, 0, &bbolt.Options{ReadOnly: true})
	must(t, err)
	defer db.Close()
	keys := map[int64]int{} // by lease
	must(t, db.View(func(tx *bbolt.Tx) error {
		if n := tx.Bucket([]byte("lease")).Stats().KeyN; n != 3 {
			t.Errorf("%d leases", n)
		}
		return tx.Bucket([]byte("key")).ForEach(func(revision, value []byte) error {
			if bytes.HasSuffix(revision, []byte("t")) { // the tombstone at the newest revision
				return nil
			}
			var kv mvccpb.KeyValue
			err := proto.Unmarshal(value, &kv)
			keys[kv.Lease]++
			return err
		})
	}))
	for id, n := range keys {
		if id == 0 || n > 1000 {
			t.Errorf("lease %d has %d of %d Events", id, n, objects)
		}
	}
}
