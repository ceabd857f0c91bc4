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

// TestLargeRanges has ranges with large answers wait for a place, while small ones are answered. Each leaves its place
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
		})
	}
	all.Wait()
	for len(places) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("%d places are taken when all is sent", len(places))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
