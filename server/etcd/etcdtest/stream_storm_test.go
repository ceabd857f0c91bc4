package etcdtest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// storm is how many requests a client sends without waiting for an answer.
const storm = 6000

// inMemory is plinth on a database in memory. A stream is the same whatever the dialect.
func inMemory(t testing.TB) string { return servePlinth(t, "sqlite://:memory:", sqlstore.Options{}) }

// patiently returns a context that ends with the test, or when patience does.
func patiently(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// TestWatchStorm creates and cancels thousands of watches on one stream, with ids of all kinds, and
// does not wait for answers. All answers are etcd's, and the watches that are left get one event each.
func TestWatchStorm(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			requests := watchStorm(seed)
			got := playStorm(t, inMemory, requests)
			eachRelease(t, func(t *testing.T, r release) {
				if diff := cmp.Diff(playStorm(t, r.start, requests), got); diff != "" {
					t.Errorf("plinth differs from etcd: %s", diff)
				}
			})
		})
	}
}

// watchStorm returns requests of which most meet a watch with their id.
func watchStorm(seed uint64) []*pb.WatchRequest {
	r := rand.New(rand.NewPCG(seed, 1))
	id := func() int64 {
		switch r.IntN(12) {
		case 0:
			return []int64{-1, -7, math.MinInt64, math.MaxInt64, 1 << 40}[r.IntN(5)]
		case 1:
			return int64(storm + r.IntN(storm))
		}
		return int64(r.IntN(storm / 4))
	}
	requests := make([]*pb.WatchRequest, storm)
	for i := range requests {
		switch r.IntN(10) {
		case 0, 1, 2:
			requests[i] = cancelOf(id())
		case 3:
			requests[i] = &pb.WatchRequest{} // asks for nothing
		default:
			c := &pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("b"), PrevKv: r.IntN(2) == 0}
			if r.IntN(3) == 0 {
				c.WatchId = id()
			}
			switch r.IntN(20) {
			case 0:
				c.RangeEnd = []byte("A")
			case 1:
				c.StartRevision = -1 - r.Int64N(9)
			case 2:
				c.StartRevision = 1
			}
			requests[i] = createOf(c)
		}
	}
	return requests
}

func createOf(c *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: c}}
}

func cancelOf(id int64) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}
}

// lastID is the id of a watch that is created after all others, and canceled after them. It sees nothing.
const lastID = 1 << 50

var lastOf = createOf(&pb.WatchCreateRequest{Key: []byte("z"), WatchId: lastID})

// playStorm returns the answers to requests, then the event of each watch that is open, then the
// answers to what cancels these.
func playStorm(t *testing.T, at endpoint, requests []*pb.WatchRequest) (lines []string) {
	t.Helper()
	conn := etcdtest.Dial(t, at(t))
	stream, err := pb.NewWatchClient(conn).Watch(patiently(t))
	if err != nil {
		t.Fatal(err)
	}
	left := map[int64]bool{}
	for _, a := range answersTo(t, stream, append(slices.Clone(requests), lastOf)) {
		lines = append(lines, answerLine(a))
		if a.Created && !a.Canceled {
			left[a.WatchId] = true
		} else {
			delete(left, a.WatchId)
		}
	}
	delete(left, lastID)
	if _, err := pb.NewKVClient(conn).Put(patiently(t), &pb.PutRequest{Key: []byte("a"), Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	lines = append(lines, eventsOf(t, stream, left)...)
	var cancels []*pb.WatchRequest
	for _, id := range slices.Sorted(maps.Keys(left)) {
		cancels = append(cancels, cancelOf(id), cancelOf(id))
	}
	for _, a := range answersTo(t, stream, append(cancels, cancelOf(lastID))) {
		lines = append(lines, answerLine(a))
	}
	return lines
}

// answersTo sends requests, of which the last is about lastID, and returns all answers to them.
func answersTo(t *testing.T, stream pb.Watch_WatchClient, requests []*pb.WatchRequest) (answers []*pb.WatchResponse) {
	t.Helper()
	go func() {
		for _, r := range requests {
			if stream.Send(r) != nil {
				return // Recv says why
			}
		}
	}()
	for {
		a, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		answers = append(answers, a)
		if a.WatchId == lastID {
			return answers
		}
	}
}

// eventsOf waits for one event of each watch.
func eventsOf(t *testing.T, stream pb.Watch_WatchClient, watches map[int64]bool) (lines []string) {
	t.Helper()
	events := map[int64]string{}
	for len(events) < len(watches) {
		a, err := stream.Recv()
		if err != nil {
			t.Fatalf("%d of %d events: %v", len(events), len(watches), err)
		}
		if len(a.Events) != 1 || !watches[a.WatchId] || events[a.WatchId] != "" {
			t.Fatalf("no event was expected: %s", a)
		}
		events[a.WatchId] = fmt.Sprint(answerLine(a), a.Events)
	}
	for _, id := range slices.Sorted(maps.Keys(events)) {
		lines = append(lines, events[id])
	}
	return lines
}

func answerLine(a *pb.WatchResponse) string {
	return fmt.Sprintf("%d at %d, created %t, canceled %t %q, %d events", a.WatchId, a.Header.GetRevision(), a.Created, a.Canceled, a.CancelReason, len(a.Events))
}

// TestKeepAliveStorm keeps leases alive by thousands of requests on one stream, most of them for leases
// that are not there, and does not wait for answers. All answers are etcd's, in the order of the requests.
func TestKeepAliveStorm(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]int64, storm)
	for i := range ids {
		switch r.IntN(4) {
		case 0:
			ids[i] = 1 + r.Int64N(5)
		case 1:
			ids[i] = []int64{0, -1, 6, math.MinInt64, math.MaxInt64}[r.IntN(5)]
		default:
			ids[i] = int64(r.Uint64())
		}
	}
	got := keepAliveStorm(t, inMemory, ids)
	eachRelease(t, func(t *testing.T, r release) {
		if diff := cmp.Diff(keepAliveStorm(t, r.start, ids), got); diff != "" {
			t.Errorf("plinth differs from etcd: %s", diff)
		}
	})
}

func keepAliveStorm(t *testing.T, at endpoint, ids []int64) (lines []string) {
	t.Helper()
	client := pb.NewLeaseClient(etcdtest.Dial(t, at(t)))
	for id := range int64(5) {
		if _, err := client.LeaseGrant(patiently(t), &pb.LeaseGrantRequest{ID: id + 1, TTL: 1000 + id}); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := client.LeaseKeepAlive(patiently(t))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for _, id := range ids {
			if stream.Send(&pb.LeaseKeepAliveRequest{ID: id}) != nil {
				return // Recv says why
			}
		}
		_ = stream.CloseSend()
	}()
	for {
		a, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatalf("after %d answers: %v", len(lines), err)
		}
		lines = append(lines, fmt.Sprintf("%d for %d at %d", a.TTL, a.ID, a.Header.Revision))
	}
}

// TestOversizedStreams sends messages around the limit on streams. One that is above it ends its stream
// as etcd does, and no other stream of the connection.
func TestOversizedStreams(t *testing.T) {
	t.Parallel()
	got := oversized(t, inMemory)
	eachRelease(t, func(t *testing.T, r release) {
		if diff := cmp.Diff(oversized(t, r.start), got); diff != "" {
			t.Errorf("plinth differs from etcd: %s", diff)
		}
	})
}

func oversized(t *testing.T, at endpoint) (lines []string) {
	t.Helper()
	conn := etcdtest.Dial(t, at(t))
	other := openWatch(t, conn)
	lines = append(lines, "before: "+watchLine(other, &pb.WatchCreateRequest{Key: []byte("a")}))
	const limit = 2 << 20 // 1.5 MiB of request and 0.5 MiB
	for _, size := range []int{1 << 20, limit - 100, limit + 1, 3 << 20, 20 << 20} {
		line := watchLine(openWatch(t, conn), &pb.WatchCreateRequest{Key: make([]byte, size)})
		lines = append(lines, fmt.Sprintf("key of %d: %s", size, line))
		line = watchLine(openWatch(t, conn), &pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: bytes.Repeat([]byte("b"), size)})
		lines = append(lines, fmt.Sprintf("end of %d: %s", size, line))
		lines = append(lines, fmt.Sprintf("keepalive of %d: %s", size, keepAliveLine(t, conn, size)))
	}
	return append(lines, "after: "+watchLine(other, &pb.WatchCreateRequest{Key: []byte("a")}))
}

func openWatch(t *testing.T, conn *grpc.ClientConn) pb.Watch_WatchClient {
	t.Helper()
	stream, err := pb.NewWatchClient(conn).Watch(patiently(t))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func watchLine(stream pb.Watch_WatchClient, r *pb.WatchCreateRequest) string {
	_ = stream.Send(createOf(r)) // Recv says why it is not sent
	a, err := stream.Recv()
	if err != nil {
		return errorLine(err)
	}
	return answerLine(a)
}

// keepAliveLine returns the answer to a request with size bytes that no server knows.
func keepAliveLine(t *testing.T, conn *grpc.ClientConn, size int) string {
	t.Helper()
	stream, err := pb.NewLeaseClient(conn).LeaseKeepAlive(patiently(t))
	if err != nil {
		t.Fatal(err)
	}
	unknown := binary.AppendUvarint([]byte{15<<3 | 2}, uint64(size)) // field 15, bytes
	r := &pb.LeaseKeepAliveRequest{ID: 1}
	r.ProtoReflect().SetUnknown(append(unknown, make([]byte, size)...))
	_ = stream.Send(r)
	a, err := stream.Recv()
	if err != nil {
		return errorLine(err)
	}
	return fmt.Sprintf("%d for %d", a.TTL, a.ID)
}

func errorLine(err error) string {
	s := status.Convert(err)
	return fmt.Sprintf("error %s: %s", s.Code(), s.Message())
}
