package etcdtest_test

import (
	"bytes"
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

// TestK3sBootstrap has several servers of k3s start at once on an empty datastore, with the requests
// of the client that k3s has for it (k3s-io/kine/pkg/client): each looks for the certificates that
// all of them share, one locks the key by creating it empty and then writes them, the others
// wait for them. Then the token is changed, which moves them to another key.
func TestK3sBootstrap(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		const key, moved = "/bootstrap/0123456789ab", "/bootstrap/ba9876543210"
		certificates := bytes.Repeat([]byte("certificate"), 5000)
		k := k3s{c}
		won := make(chan bool, 5)
		var servers errgroup.Group
		for range cap(won) {
			servers.Go(func() error {
				first, err := k.start(ctx, key, certificates)
				won <- first
				return err
			})
		}
		if err := servers.Wait(); err != nil {
			t.Fatal(err)
		}
		close(won)
		winners := 0
		for first := range won {
			if first {
				winners++
			}
		}
		if winners != 1 {
			t.Errorf("%d servers made certificates", winners)
		}
		old, err := c.Get(ctx, key)
		if err != nil || len(old.Kvs) != 1 || old.Kvs[0].Version != 2 || !bytes.Equal(old.Kvs[0].Value, certificates) {
			t.Fatalf("%v, %v", old, err)
		}
		revision := old.Kvs[0].ModRevision
		if done, err := k.write(ctx, moved, 0, certificates); err != nil || !done {
			t.Errorf("create at the new key: %v, %v", done, err)
		}
		if done, err := k.remove(ctx, key, revision-1); err != nil || done {
			t.Errorf("delete at an old revision: %v, %v", done, err)
		}
		if done, err := k.remove(ctx, key, revision); err != nil || !done {
			t.Errorf("delete: %v, %v", done, err)
		}
		if done, err := k.write(ctx, key, revision, certificates); err != nil || done {
			t.Errorf("update of what is gone: %v, %v", done, err)
		}
		if all, err := c.Get(ctx, "/bootstrap", clientv3.WithPrefix()); err != nil || len(all.Kvs) != 1 || string(all.Kvs[0].Key) != moved {
			t.Errorf("%v, %v", all, err)
		}
	})
}

// k3s sends what a server of k3s sends before it starts its kube-apiserver.
type k3s struct{ *clientv3.Client }

// start is the start of one server; first says that it has made the certificates.
func (k k3s) start(ctx context.Context, key string, certificates []byte) (first bool, err error) {
	all, err := k.Get(ctx, "/bootstrap", clientv3.WithPrefix(), clientv3.WithRev(0))
	if err != nil {
		return false, err
	}
	if len(all.Kvs) == 0 {
		if first, err = k.write(ctx, key, 0, nil); err != nil {
			return false, err
		}
	}
	for {
		now, err := k.Get(ctx, key)
		if err != nil {
			return false, err
		}
		if first {
			return k.write(ctx, key, now.Kvs[0].ModRevision, certificates)
		}
		if len(now.Kvs) == 1 && len(now.Kvs[0].Value) > 0 {
			return false, nil
		}
	}
}

// write creates a key, or updates it if revision is not 0.
func (k k3s) write(ctx context.Context, key string, revision int64, value []byte) (bool, error) {
	t := k.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).Then(clientv3.OpPut(key, string(value)))
	if revision != 0 {
		t = t.Else(clientv3.OpGet(key))
	}
	r, err := t.Commit()
	return err == nil && r.Succeeded, err
}

func (k k3s) remove(ctx context.Context, key string, revision int64) (bool, error) {
	r, err := k.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpDelete(key)).
		Else(clientv3.OpGet(key)).
		Commit()
	return err == nil && r.Succeeded, err
}
