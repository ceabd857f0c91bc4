package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestLargeRanges has ranges with large answers, also in transactions, wait for a place, while small ones are answered. Each leaves its place
// when it is sent, or when its client does not wait any longer.
func TestLargeRanges(t *testing.T) {
	m, ctx := startMember(t, "sqlite://:memory:", Options{}), patiently(t)
	const keys = 8
	for i := range keys {
		if _, err := m.client.Put(ctx, fmt.Sprint("large/", i), strings.Repeat("v", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.client.Put(ctx, "small/", "v"); err != nil {
		t.Fatal(err)
	}
	get := func(ctx context.Context, prefix string, want int, o ...clientv3.OpOption) error {
		r, err := m.client.Get(ctx, prefix, append(o, clientv3.WithPrefix())...)
		if err == nil && len(r.Kvs) != want {
			err = fmt.Errorf("%d keys of %d", len(r.Kvs), want)
		}
		return err
	}
	places := m.transport.large
	for range largeAtOnce {
		places <- struct{}{} // as other calls do
	}
	soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := get(soon, "large/", keys); err == nil {
		t.Error("a large range is answered without a place")
	}
	if err := get(ctx, "small/", 1); err != nil {
		t.Errorf("a small range: %v", err)
	}
	txn := func(ctx context.Context, prefix string, want int, o ...clientv3.Op) error {
		o = append(o, clientv3.OpGet(prefix, clientv3.WithPrefix()))
		r, err := m.client.Txn(ctx).Then(clientv3.OpTxn(nil, o, nil)).Commit()
		if err != nil {
			return err
		}
		inner := r.Responses[0].GetResponseTxn().Responses
		if n := len(inner[len(inner)-1].GetResponseRange().Kvs); n != want {
			return fmt.Errorf("%d keys of %d", n, want)
		}
		return nil
	}
	for name, o := range map[string][]clientv3.Op{"reads": nil, "writes": {clientv3.OpPut("written", "v")}} {
		soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		if err := txn(soon, "large/", keys, o...); err == nil {
			t.Errorf("a large transaction that %s is answered without a place", name)
		}
		cancel()
		if err := txn(ctx, "small/", 1); err != nil {
			t.Errorf("a small transaction: %v", err)
		}
	}
	if err := get(ctx, "written", 0); err != nil {
		t.Errorf("of a transaction that has waited for a place in vain: %v", err)
	}
	if err := get(ctx, "large/", keys, clientv3.WithKeysOnly()); err != nil {
		t.Errorf("a large range without values: %v", err)
	}
	for range largeAtOnce {
		<-places
	}
	var all sync.WaitGroup
	for range 4 * largeAtOnce {
		all.Go(func() {
			if err := get(ctx, "large/", keys); err != nil {
				t.Errorf("one of many large ranges: %v", err)
			}
			if err := txn(ctx, "large/", keys, clientv3.OpPut("written", "v")); err != nil {
				t.Errorf("one of many large transactions: %v", err)
			}
		})
	}
	all.Wait()
	if r, err := m.client.Get(ctx, "written"); err != nil || len(r.Kvs) != 1 || r.Kvs[0].Version != 4*largeAtOnce {
		t.Errorf("each transaction writes once: %v %v", r, err)
	}
	for len(places) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("%d places are taken when all is sent", len(places))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
