package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// fillStream puts keys with values of all sizes, and returns the newest revision.
func fillStream(t *testing.T, m *member, keys int) int64 {
	t.Helper()
	kv, random := kvService{Server: m.Server}, rand.New(rand.NewPCG(1, 2))
	var revision int64
	for i := range keys {
		size := random.IntN(200)
		if i%7 == 0 {
			size = random.IntN(2 * streamPart)
		}
		r, err := kv.Put(t.Context(), &pb.PutRequest{Key: fmt.Appendf(nil, "/k/%06d", i), Value: make([]byte, size)})
		if err != nil {
			t.Fatal(err)
		}
		revision = r.Header.Revision
	}
	return revision
}

// TestRangeStreamIsRange: the parts of a stream are what Range answers, and none is larger than it should be, unless it has
// but one key. Meanwhile others write.
func TestRangeStreamIsRange(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		for name, o := range map[string]sqlstore.Options{
			"remembered": {History: -1},
			"forgotten":  {History: -1, CacheBytes: 1, WindowBytes: 1},
			"not kept":   {History: -1, Snapshots: 1},
		} {
			if name == "remembered" && d.Name != "sqlite" && !logtest.Everywhere() {
				continue // nothing is read from a database
			}
			t.Run(name, func(t *testing.T) {
				m := startMemberOn(t, d.Fresh(t), o, Options{})
				newest := fillStream(t, m, 200)
				for _, change := range []func(*pb.RangeRequest){
					func(*pb.RangeRequest) {},
					func(r *pb.RangeRequest) { r.Revision = newest - 50 },
					func(r *pb.RangeRequest) { r.Revision = newest },
					func(r *pb.RangeRequest) { r.Limit = 1 },
					func(r *pb.RangeRequest) { r.Limit = 150 },
					func(r *pb.RangeRequest) { r.Limit = 200 },
					func(r *pb.RangeRequest) { r.KeysOnly = true },
					func(r *pb.RangeRequest) { r.CountOnly = true },
					func(r *pb.RangeRequest) { r.RangeEnd = nil },
					func(r *pb.RangeRequest) { r.Key, r.RangeEnd = r.RangeEnd, r.Key },
					func(r *pb.RangeRequest) { r.Serializable, r.SortOrder = true, pb.RangeRequest_ASCEND },
				} {
					compareStream(t, m, kvGetBy("/k/", "/l", change))
				}
			})
		}
	})
}

func compareStream(t *testing.T, m *member, r *pb.RangeRequest) {
	t.Helper()
	ctx, client, kv := patiently(t), pb.NewKVClient(m.conn), kvService{Server: m.Server}
	want, err := client.Range(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.RangeStream(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	got := &pb.RangeResponse{}
	for got.Header == nil {
		part, err := stream.Recv()
		if err != nil {
			t.Fatalf("%s: %v", textOf(r), err)
		}
		if n := proto.Size(part); n > streamPart && len(part.RangeResponse.Kvs) > 1 {
			t.Errorf("%s: %d bytes of %d keys in one part", textOf(r), n, len(part.RangeResponse.Kvs))
		}
		proto.Merge(got, part.RangeResponse)
		if _, err := kv.Put(ctx, kvPut("/k/000100", "new")); err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Put(ctx, kvPut(fmt.Sprint("/k/000199/", len(got.Kvs)), "new")); err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Range(ctx, kvGetBy("/k/", "/l", func(r *pb.RangeRequest) { r.Limit = 2 })); err != nil { // whose state is kept
			t.Fatal(err)
		}
	}
	if !proto.Equal(got, want) {
		t.Errorf("%s: %d keys of %d, more %v, header %v; want %d keys of %d, more %v, header %v", textOf(r),
			len(got.Kvs), got.Count, got.More, got.Header, len(want.Kvs), want.Count, want.More, want.Header)
	}
}

// TestRangeStreamUnread: what waits for a client that reads nothing is a few parts.
func TestRangeStreamUnread(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	kvFill(t, m, 3000, make([]byte, 10<<10))
	ctx, cancel := context.WithCancel(patiently(t))
	defer cancel()
	before := m.metrics.requests.sent.Load()
	stream, err := pb.NewKVClient(m.conn).RangeStream(ctx, kvGet("/k/", "/l"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if sent := m.metrics.requests.sent.Load() - before; sent == 0 || sent > 4*streamPart {
		t.Errorf("%d bytes are encoded for a client that reads nothing", sent)
	}
	n := 0
	for {
		part, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if n += len(part.RangeResponse.Kvs); part.RangeResponse.Header != nil {
			break
		}
	}
	if n != 3000 {
		t.Errorf("%d keys when it reads on", n)
	}
}

// TestRangeStreamCompacted: a stream whose revision is compacted ends with an error.
func TestRangeStreamCompacted(t *testing.T) {
	m, ctx := startMember(t, inMemory, Options{}), patiently(t)
	kv := kvService{Server: m.Server}
	kvFill(t, m, 300, make([]byte, 10<<10))
	parts := 0
	err := m.streamRange(ctx, kvGet("/k/", "/l"), func(part *pb.RangeResponse) error {
		if parts++; parts == 1 {
			put, err := kv.Put(ctx, kvPut("/k/", ""))
			if err == nil {
				_, err = kv.Compact(ctx, &pb.CompactionRequest{Revision: put.Header.Revision, Physical: true})
			}
			return err
		}
		return nil
	})
	if got := toStatus(err); !errors.Is(got, rpctypes.ErrGRPCCompacted) || parts != 1 {
		t.Errorf("%d parts, and then %v", parts, got)
	}
}

func TestRangeStreamRefuses(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	for name, test := range map[string]struct {
		change func(*pb.RangeRequest)
		want   codes.Code
	}{
		"no key":         {func(r *pb.RangeRequest) { r.Key = nil }, codes.InvalidArgument},
		"descending":     {func(r *pb.RangeRequest) { r.SortOrder = pb.RangeRequest_DESCEND }, codes.Unimplemented},
		"by value":       {func(r *pb.RangeRequest) { r.SortTarget = pb.RangeRequest_VALUE }, codes.Unimplemented},
		"unknown order":  {func(r *pb.RangeRequest) { r.SortOrder = 7 }, codes.InvalidArgument},
		"changed since":  {func(r *pb.RangeRequest) { r.MinModRevision = 1 }, codes.Unimplemented},
		"created before": {func(r *pb.RangeRequest) { r.MaxCreateRevision = 9 }, codes.Unimplemented},
		"the future":     {func(r *pb.RangeRequest) { r.Revision = 99 }, codes.OutOfRange},
	} {
		_, err := allParts(pb.NewKVClient(m.conn).RangeStream(patiently(t), kvGetBy("/k/", "/l", test.change)))
		if got := status.Code(err); got != test.want {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}
