package upstream_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
)

// store is an etcd or a kine, written as kube-apiserver does it: kine takes nothing else.
type store struct{ *clientv3.Client }

func client(t *testing.T, url string) store {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return store{c}
}

func (s store) modified(t *testing.T, key string) int64 {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	must(t, err)
	if len(got.Kvs) == 0 {
		return 0
	}
	return got.Kvs[0].ModRevision
}

// set creates or updates a key.
func (s store) set(t *testing.T, key, value string) {
	t.Helper()
	s.change(t, key, clientv3.OpPut(key, value))
}

// remove deletes a key that is there.
func (s store) remove(t *testing.T, key string) {
	t.Helper()
	if s.modified(t, key) > 0 {
		s.change(t, key, clientv3.OpDelete(key))
	}
}

// change tries until it has read the newest revision, because kine is sometimes late.
func (s store) change(t *testing.T, key string, op clientv3.Op) {
	t.Helper()
	for end := time.Now().Add(etcdtest.Patience); time.Now().Before(end); {
		at := s.modified(t, key)
		txn := s.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).Then(op)
		if at > 0 {
			txn = txn.Else(clientv3.OpGet(key))
		}
		done, err := txn.Commit()
		must(t, err)
		if done.Succeeded || at == 0 && op.IsDelete() {
			return
		}
	}
	t.Fatalf("%s was not changed", key)
}

func (s store) revision(t *testing.T) int64 {
	t.Helper()
	got, err := s.Get(t.Context(), "/registry/health")
	must(t, err)
	return got.Header.Revision
}

// load writes what the recorded snapshot has, but for the key that kine has of its own.
func load(t *testing.T, s store) {
	t.Helper()
	must(t, openSnapshot(t).Each(t.Context(), "/registry/", func(page []upstream.Pair) error {
		for _, pair := range page {
			s.set(t, pair.Key, string(pair.Value))
		}
		return nil
	}))
}

// kineEndpoint is a DSN of plinth as kine takes it, with k3s's parameters.
func kineEndpoint(t *testing.T, dsn string) string {
	t.Helper()
	switch dialects.Scheme(dsn) {
	case "sqlite":
		return dsn + "?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate"
	case "mysql":
		config, err := dialects.MySQLConfig(dsn, dialects.Options{})
		must(t, err)
		return "mysql://" + config.FormatDSN()
	}
	return dsn
}
