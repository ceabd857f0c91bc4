package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// What a read answers is the state at the revision in its header, also while others write.
func TestReadsAreExactWhileOthersWrite(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := startMember(t, d.Fresh(t), Options{})
		kv := kvService{Server: m.Server}
		ctx, stop := context.WithCancel(patiently(t))
		defer stop()
		key := func(revision int64) string { return fmt.Sprint("k", revision%4) } // that a revision writes
		first, err := kv.Range(ctx, kvGet("k", ""))
		if err != nil {
			t.Fatal(err)
		}
		begin := first.Header.Revision
		var all errgroup.Group
		all.Go(func() error {
			defer stop()
			for n := begin + 1; n <= begin+200; n++ {
				resp, err := kv.Put(ctx, kvPut(key(n), fmt.Sprint(n)))
				if err != nil {
					return err
				}
				if resp.Header.Revision != n {
					return fmt.Errorf("put made revision %d instead of %d", resp.Header.Revision, n)
				}
			}
			return nil
		})
		for reader := range 4 {
			all.Go(func() error {
				for i := reader; ctx.Err() == nil; i++ {
					r := kvGet(fmt.Sprint("k", i%4), "")
					if i%3 == 0 {
						r = kvGet("k", "l")
					}
					resp, err := kv.Range(ctx, r)
					if ctx.Err() != nil {
						return nil
					}
					if err != nil {
						return err
					}
					time.Sleep(time.Millisecond) // readers that never rest leave the writer no processor
					if err := exact(resp, begin, key, len(r.RangeEnd) == 0); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// exact says whether an answer has the newest value of each key at the revision of its header.
func exact(resp *pb.RangeResponse, begin int64, key func(int64) string, one bool) error {
	now := resp.Header.Revision
	want := make(map[string]int64)
	for n := begin + 1; n <= now; n++ {
		want[key(n)] = n
	}
	if !one && len(resp.Kvs) != len(want) {
		return fmt.Errorf("%d keys at revision %d, and not %d", len(resp.Kvs), now, len(want))
	}
	for _, e := range resp.Kvs {
		if n := want[string(e.Key)]; e.ModRevision != n || string(e.Value) != fmt.Sprint(n) {
			return fmt.Errorf("at revision %d %s has the value %s of revision %d, and not that of %d", now, e.Key, e.Value, e.ModRevision, n)
		}
	}
	return nil
}

func TestValuesThatAreNotInMemory(t *testing.T) {
	want := readGolden(t)
	m := startMemberOn(t, logtest.SQLite(t), sqlstore.Options{History: -1, CacheBytes: 1, WindowBytes: 1}, Options{})
	for _, s := range kvScripts() {
		t.Run(s.name, func(t *testing.T) { compareLines(t, want[s.name], play(t, m.conn, s, m.grantInStore)) })
	}
}

// A list goes on at the revision of its first page, whatever has changed since.
func TestPagesOfOneRevision(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := startMember(t, d.Fresh(t), Options{})
		ctx, kv := patiently(t), kvService{Server: m.Server}
		kvFill(t, m, 300, []byte("first"))
		r := kvGetBy("/k/", "/l", func(r *pb.RangeRequest) { r.Limit = 70 })
		seen := 0
		for {
			resp, err := kv.Range(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			if want := int64(300 - seen); resp.Count != want {
				t.Errorf("after %d keys there are %d, and not %d", seen, resp.Count, want)
			}
			for _, e := range resp.Kvs {
				if want := fmt.Sprintf("/k/%06d", seen); string(e.Key) != want || string(e.Value) != "first" {
					t.Fatalf("key %s with value %s, want %s", e.Key, e.Value, want)
				}
				seen++
			}
			if !resp.More {
				break
			}
			if r.Revision == 0 {
				r.Revision = resp.Header.Revision
			}
			r.Key = append(resp.Kvs[len(resp.Kvs)-1].Key, 0)
			if _, err := kv.DeleteRange(ctx, kvDel(fmt.Sprintf("/k/%06d", seen+5), "")); err != nil {
				t.Fatal(err)
			}
			kvFill(t, m, 10, []byte("second"))
			if _, err := kv.Put(ctx, kvPut("/k/0000005", "new")); err != nil {
				t.Fatal(err)
			}
		}
		if seen != 300 {
			t.Errorf("%d keys of 300", seen)
		}
	})
}

func TestReadsEndWithTheirContext(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	kvFill(t, m, 5000, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.readRange(ctx, kvGet("/", "0")); !errors.Is(err, context.Canceled) {
		t.Errorf("a range whose caller is gone: %v", err)
	}
}
