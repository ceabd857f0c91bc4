package etcdtest

import (
	"bytes"
	"math/rand/v2"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// Step is one request of a sequence.
type Step struct {
	// Request is one of pb.RangeRequest, PutRequest, DeleteRangeRequest, TxnRequest, CompactionRequest,
	// LeaseGrantRequest, LeaseRevokeRequest, LeaseKeepAliveRequest, LeaseTimeToLiveRequest,
	// LeaseLeasesRequest, StatusRequest, HashKVRequest, AlarmRequest, WatchRequest.
	Request Message
	Stream  int // of a WatchRequest
}

// Message is a message of etcd's protocol.
type Message = proto.Message

// head is added to a revision in a Step's Request that is relative to the newest revision that the client has
// seen when it sends the request. So a sequence still reads old revisions after requests are removed from it.
const head = 1 << 40

// Streams is the number of streams that a sequence watches on.
const Streams = 3

// keys are few, so that requests meet. There are at most a dozen, because etcd's sort is stable only for so
// few, and sorting by value or version has many equal entries. They end in every way that matters to ranges.
var keys = [][]byte{
	[]byte("\x00"), []byte("\x00\x00"), []byte("a"), []byte("a\x00"), []byte("a/1"), []byte("a/2"),
	[]byte("a/\xff"), []byte("a/\xff\xff"), []byte("a0"), []byte("b"), []byte("\xff"), []byte("\xff\xff"),
}

// Generate returns n random requests. Equal seeds make equal sequences.
func Generate(seed uint64, n int) []Step {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 14))}
	steps := make([]Step, n)
	for i := range steps {
		steps[i] = g.step()
	}
	return steps
}

type generator struct {
	*rand.Rand
	alarmed int // requests until an alarm is ended
}

// often says yes once in n times.
func (g *generator) often(n int) bool { return g.IntN(n) == 0 }

// pick returns one of the alternatives.
func pick[T any](g *generator, alternatives ...T) T { return alternatives[g.IntN(len(alternatives))] }

// The requests and how many of each there are in sum of weights.
var kinds = []struct {
	weight int
	make   func(*generator) Step
}{
	{250, func(g *generator) Step { return Step{Request: g.put()} }},
	{200, func(g *generator) Step { return Step{Request: g.readRange()} }},
	{80, func(g *generator) Step { return Step{Request: g.deleteRange()} }},
	{230, func(g *generator) Step { return Step{Request: g.transaction()} }},
	{12, func(g *generator) Step {
		return Step{Request: &pb.CompactionRequest{Revision: pick(g, g.past(), g.past(), g.past(), g.past(), max(g.revision(), 1)), Physical: g.often(2)}}
	}},
	{25, func(g *generator) Step { return Step{Request: &pb.LeaseGrantRequest{ID: g.lease(), TTL: g.ttl()}} }},
	{15, func(g *generator) Step { return Step{Request: &pb.LeaseRevokeRequest{ID: g.lease()}} }},
	{15, func(g *generator) Step { return Step{Request: &pb.LeaseKeepAliveRequest{ID: g.lease()}} }},
	{30, func(g *generator) Step {
		return Step{Request: &pb.LeaseTimeToLiveRequest{ID: g.lease(), Keys: g.often(2)}}
	}},
	{10, func(g *generator) Step { return Step{Request: &pb.LeaseLeasesRequest{}} }},
	{60, func(g *generator) Step { return g.watch() }},
	{5, func(g *generator) Step { return Step{Request: &pb.StatusRequest{}} }},
	{20, func(g *generator) Step { return Step{Request: &pb.HashKVRequest{Revision: g.revision()}} }},
	{4, func(g *generator) Step { return Step{Request: g.alarm()} }},
}

func (g *generator) step() Step {
	if g.alarmed > 0 {
		if g.alarmed--; g.alarmed == 0 {
			return Step{Request: &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE}}
		}
	}
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	n := g.IntN(sum)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k.make(g)
		}
	}
	panic("unreachable")
}

func (g *generator) key() []byte {
	if g.often(100) {
		return nil // etcd refuses it
	}
	return bytes.Clone(keys[g.IntN(len(keys))])
}

// ends returns the bounds of a range of keys.
func (g *generator) ends() (key, end []byte) {
	key = g.key()
	switch g.IntN(8) {
	case 0, 1, 2:
		return key, nil
	case 3:
		return key, []byte(clientv3.GetPrefixRangeEnd(string(key)))
	case 4:
		return key, []byte{0} // all from key
	case 5:
		return []byte{0}, []byte{0} // all
	case 6:
		return []byte("a"), []byte("b")
	}
	return key, g.key() // which may come before key
}

func (g *generator) value() []byte {
	switch g.IntN(6) {
	case 0:
		return nil
	case 1:
		return []byte{0}
	case 2:
		return bytes.Repeat([]byte{0xff}, g.IntN(40))
	}
	return []byte(pick(g, "x", "y", "z", "xx"))
}

// past returns an old revision, if it is above the floor.
func (g *generator) past() int64 { return head - int64(g.IntN(12)) }

// revision returns the newest revision in most cases.
func (g *generator) revision() int64 {
	switch g.IntN(24) {
	case 0, 1, 2, 3, 4:
		return g.past()
	case 5:
		return head - int64(g.IntN(200))
	case 6:
		return head + 1 + int64(g.IntN(3)) // the future
	case 7:
		return pick[int64](g, -1, 1, 1<<62)
	}
	return 0
}

// bound is one of min_mod_revision and its like.
func (g *generator) bound() int64 {
	if !g.often(8) {
		return 0
	}
	return pick(g, g.past(), g.past(), head-20, 1, -1)
}

// lease returns in most cases a lease that was granted, and in half of these one with many keys.
func (g *generator) lease() int64 {
	switch {
	case g.often(40):
		return pick[int64](g, -1, 77, 1<<62)
	case g.often(2):
		return 1
	}
	return int64(2 + g.IntN(4))
}

// ttl returns a time that is too long for a test, so that no lease expires here.
func (g *generator) ttl() int64 {
	if g.often(8) {
		return pick[int64](g, 9_000_000_000, 9_000_000_001, 1<<62)
	}
	return 5000 + int64(g.IntN(3))
}

func (g *generator) put() *pb.PutRequest {
	r := &pb.PutRequest{Key: g.key(), Value: g.value(), PrevKv: g.often(3)}
	if g.often(4) {
		r.Lease = g.lease()
	}
	if g.often(10) {
		if r.IgnoreValue = true; !g.often(4) {
			r.Value = nil
		}
	}
	if g.often(10) {
		if r.IgnoreLease = true; !g.often(4) {
			r.Lease = 0
		}
	}
	return r
}

func (g *generator) readRange() *pb.RangeRequest {
	r := &pb.RangeRequest{
		Revision: g.revision(), Serializable: g.often(3), KeysOnly: g.often(5), CountOnly: g.often(8),
		MinModRevision: g.bound(), MaxModRevision: g.bound(), MinCreateRevision: g.bound(), MaxCreateRevision: g.bound(),
	}
	r.Key, r.RangeEnd = g.ends()
	if g.often(8) { // a page of what is sorted
		r.Key, r.RangeEnd = pick(g, []byte(nil), []byte{0}, []byte("a")), []byte{0}
		r.Limit, r.SortOrder, r.SortTarget = int64(1+g.IntN(6)), pb.RangeRequest_DESCEND, pb.RangeRequest_SortTarget(g.IntN(5))
		return r
	}
	if g.often(3) {
		r.Limit = pick[int64](g, 1, 2, 3, 100, -1, 1<<62)
	}
	if g.often(2) {
		r.SortOrder = pb.RangeRequest_SortOrder(g.IntN(3))
		r.SortTarget = pb.RangeRequest_SortTarget(g.IntN(5))
	}
	if g.often(100) {
		r.SortOrder = 7
	}
	if g.often(100) {
		r.SortTarget = 7
	}
	return r
}

func (g *generator) deleteRange() *pb.DeleteRangeRequest {
	r := &pb.DeleteRangeRequest{PrevKv: g.often(2)}
	if r.Key, r.RangeEnd = g.ends(); len(r.RangeEnd) > 0 && !g.often(4) {
		r.RangeEnd = nil // few keys are deleted more often than all
	}
	return r
}

func (g *generator) alarm() *pb.AlarmRequest {
	r := &pb.AlarmRequest{Action: pb.AlarmRequest_AlarmAction(g.IntN(3)), Alarm: pb.AlarmType_NOSPACE}
	if r.Action == pb.AlarmRequest_ACTIVATE {
		g.alarmed = 10
	}
	if r.Action == pb.AlarmRequest_GET {
		r.Alarm = pb.AlarmType(g.IntN(3))
	}
	return r
}

func (g *generator) watchID() int64 {
	if g.often(20) {
		return pick[int64](g, -7, 1<<62)
	}
	return int64(g.IntN(4))
}

func (g *generator) watch() Step {
	s := Step{Stream: g.IntN(Streams)}
	if g.often(4) {
		s.Request = &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: g.watchID()}}}
		return s
	}
	if g.often(8) {
		s.Request = &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
		return s
	}
	c := &pb.WatchCreateRequest{PrevKv: g.often(2), Fragment: g.often(4), ProgressNotify: g.often(4)}
	c.Key, c.RangeEnd = g.ends()
	switch g.IntN(8) {
	case 0, 1, 2:
		c.StartRevision = g.past()
	case 3:
		c.StartRevision = head - int64(g.IntN(300))
	case 4:
		c.StartRevision = head + 1 + int64(g.IntN(3))
	case 5:
		c.StartRevision = pick[int64](g, -1, 1)
	}
	if g.often(3) {
		c.WatchId = g.watchID()
	}
	if g.often(5) {
		c.Filters, c.PrevKv = append(c.Filters, pb.WatchCreateRequest_FilterType(g.IntN(2))), !g.often(4)
	}
	if g.often(40) {
		c.Filters = append(c.Filters, pb.WatchCreateRequest_FilterType(g.IntN(3)))
	}
	s.Request = &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: c}}
	return s
}
