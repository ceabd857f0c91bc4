package etcd

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The largest sizes are those that etcd 3.7.3 takes.
func TestLargestRequests(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	ctx, kv := patiently(t), pb.NewKVClient(m.conn)
	value := func(n int) string { return string(make([]byte, n)) }
	for _, tt := range []struct {
		name    string
		largest int
		ask     func(n int) error
	}{
		{"put", 1572840, func(n int) error { _, err := kv.Put(ctx, kvPut("k", value(n))); return err }},
		{"txn", 1572832, func(n int) error { _, err := kv.Txn(ctx, kvTxn(kvPut("k", value(n)))); return err }},
		{"delete", 1572838, func(n int) error { _, err := kv.DeleteRange(ctx, kvDel("k", value(n))); return err }},
		{"range", 1572864 + 500_000, func(n int) error { _, err := kv.Range(ctx, kvGet("k", value(n))); return err }},
		{"reading txn", 1572864 + 500_000, func(n int) error { _, err := kv.Txn(ctx, kvTxn(kvGet("k", value(n)))); return err }},
	} {
		if err := tt.ask(tt.largest); err != nil {
			t.Errorf("%s of %d bytes: %v", tt.name, tt.largest, err)
		}
		if tt.largest > m.o.MaxRequestBytes { // a read: only gRPC bounds it
			continue
		}
		if err := tt.ask(tt.largest + 1); rpctypes.Error(err) != rpctypes.ErrRequestTooLarge {
			t.Errorf("%s of %d bytes: %v, want %v", tt.name, tt.largest+1, err, rpctypes.ErrRequestTooLarge)
		}
	}
}

func TestLongestKeys(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := startMember(t, d.Fresh(t), Options{})
		ctx, kv := patiently(t), kvService{Server: m.Server}
		longest, longer := string(make([]byte, changelog.MaxKeyBytes)), string(make([]byte, changelog.MaxKeyBytes+1))
		if _, err := kv.Put(ctx, kvPut(longest, "v")); err != nil {
			t.Errorf("put of the longest key: %v", err)
		}
		const tooLong = "etcdserver: request is too large: the key has 1025 bytes, and plinth takes 1024 at most"
		if _, err := kv.Put(ctx, kvPut(longer, "v")); status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tooLong {
			t.Errorf("put of a longer key: %v", err)
		}
		if _, err := kv.Txn(ctx, kvTxn(kvTxn(kvPut(longer, "v")))); status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tooLong {
			t.Errorf("put of a longer key in a transaction: %v", err)
		}
		resp, err := kv.Txn(ctx, kvTxnIf(kvIfs(kvExists(longer)), nil, []any{kvGet(longer, ""), kvGet(longest, ""), kvDel(longer, ""), kvGet(longest, longer), kvDel(longest, longer)}))
		if err != nil {
			t.Fatal(err)
		}
		var counts []int64
		for _, op := range resp.Responses {
			counts = append(counts, op.GetResponseRange().GetCount()+op.GetResponseDeleteRange().GetDeleted())
		}
		if want := []int64{0, 1, 0, 1, 1}; fmt.Sprint(counts) != fmt.Sprint(want) {
			t.Errorf("operations on longer keys found %v keys, want %v", counts, want)
		}
	})
}

// Counters that several callers increase by comparing lose no step.
func TestCompareAndSwap(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := startMember(t, d.Fresh(t), Options{})
		ctx, kv := patiently(t), kvService{Server: m.Server}
		increase := func() error {
			for {
				now, err := kv.Range(ctx, kvGet("n", ""))
				if err != nil {
					return err
				}
				mod, n := int64(0), 0
				if len(now.Kvs) > 0 {
					mod = now.Kvs[0].ModRevision
					n, _ = strconv.Atoi(string(now.Kvs[0].Value))
				}
				same := &pb.Compare{Key: []byte("n"), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: mod}}
				resp, err := kv.Txn(ctx, kvTxnIf(kvIfs(same), []any{kvPut("n", strconv.Itoa(n+1))}, []any{kvGet("n", "")}))
				if err != nil {
					return err
				}
				if resp.Succeeded {
					return nil
				}
				if seen := resp.Responses[0].GetResponseRange().Kvs; len(seen) == 0 || seen[0].ModRevision == mod {
					return fmt.Errorf("revision %d is refused, and yet the one that there is: %v", mod, seen)
				}
			}
		}
		var all errgroup.Group
		const callers, steps = 5, 20
		for range callers {
			all.Go(func() error {
				for range steps {
					if err := increase(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		end, err := kv.Range(ctx, kvGet("n", ""))
		if err != nil {
			t.Fatal(err)
		}
		if e := end.Kvs[0]; string(e.Value) != strconv.Itoa(callers*steps) || e.Version != callers*steps {
			t.Errorf("in the end the counter is %s in version %d, want %d", e.Value, e.Version, callers*steps)
		}
	})
}

// A deletion from a key on passes the check for overlaps, as in etcd, and can take a key away from a
// put that keeps the value; etcd panics then. Nothing is written.
func TestPutLosesItsValue(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	ctx, kv := patiently(t), kvService{Server: m.Server}
	if _, err := kv.Put(ctx, kvPut("k", "v")); err != nil {
		t.Fatal(err)
	}
	_, err := kv.Txn(ctx, kvTxn(kvPut("a", ""), kvDel("b", "\x00"), &pb.PutRequest{Key: []byte("k"), IgnoreValue: true}))
	if err != rpctypes.ErrGRPCKeyNotFound {
		t.Errorf("error %v, want %v", err, rpctypes.ErrGRPCKeyNotFound)
	}
	all, err := kv.Range(ctx, kvGet("\x00", "\x00"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Kvs) != 1 || string(all.Kvs[0].Value) != "v" || all.Header.Revision != 2 {
		t.Errorf("after a transaction that failed: %v", all)
	}
}

func TestTxnBounds(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	kvFill(t, m, 20, []byte("12345"))
	all := span{from: "/k/", to: "/l"}
	for _, tt := range []struct {
		name string
		x    txnRun
		want error
	}{
		{"enough", txnRun{steps: 20, bytes: maxTxnBytes - 20*14, keys: maxTxnKeys - 20}, nil},
		{"too many steps", txnRun{steps: 19}, errTooMuch},
		{"too many bytes", txnRun{steps: 20, bytes: maxTxnBytes - 20*14 + 1}, errTooMuch},
		{"too many keys", txnRun{steps: 20, keys: maxTxnKeys - 19}, errTooMuch},
	} {
		_, err := m.store.Keys().Read(t.Context(), func(tx *sqlstore.Tx) error {
			x := tt.x
			x.ctx, x.tx = t.Context(), tx
			entries, err := x.entriesIn(all)
			if err != nil {
				return err
			}
			_, err = x.values(entries)
			return err
		})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
