package etcd

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"sort"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// keys is a state from which ranges are read: a view of the Store, or the state of a transaction.
type keys interface {
	get(key string) (*sqlstore.Entry, error)
	scan(from, to string, f func(*sqlstore.Entry) bool) error
	count(from, to string) (int64, error)
}

// valuesOf returns the values of entries, in their order.
type valuesOf func(entries []*sqlstore.Entry) ([][]byte, error)

// rereads is how often a read of the newest state begins again because a compaction has removed rows that it
// needed.
const rereads = 10

// readRange answers r from the Store's present state.
func (s *Server) readRange(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	for try := 1; ; try++ {
		resp, err := s.readRangeOnce(ctx, r)
		if r.Revision > 0 || try == rereads || !errors.Is(err, changelog.ErrCompacted) {
			return resp, err
		}
	}
}

func (s *Server) readRangeOnce(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	values := func(entries []*sqlstore.Entry) ([][]byte, error) { return s.rangeValues(ctx, entries) }
	at := spanOf(r.Key, r.RangeEnd)
	if at.one && r.Revision <= 0 {
		if e, revision, ok := s.newest(at.from); ok {
			entries, count := oneEntry(e, r)
			return answerRange(s.header(revision), entries, count, values, r)
		}
	}
	view, revision, err := s.viewAt(ctx, r.Revision)
	if err != nil {
		return nil, err
	}
	entries, count, err := selectEntries(viewKeys{ctx, view}, at, r)
	if err != nil {
		return nil, err
	}
	resp, err := answerRange(s.header(revision), entries, count, values, r)
	if err == nil && resp.More && r.Revision <= 0 && r.Limit > 1 { // a client that reads one key only wants its revision
		s.store.Keep(view) // the next page will request this revision
	}
	return resp, err
}

// newest returns the entry of key, and the revision of the state that it was read from. ok is false if other
// commits are too frequent for that.
func (s *Server) newest(key string) (e *sqlstore.Entry, revision int64, ok bool) {
	before := s.store.Revision()
	for range 4 {
		e := s.store.Get(key)
		after := s.store.Revision()
		if after == before {
			revision, _ := changelog.Split(after)
			return e, max(revision, firstRevision), true
		}
		before = after
	}
	return nil, 0, false
}

// viewAt returns the state at a revision, and the newest revision. A revision of 0 or less is the newest.
func (s *Server) viewAt(ctx context.Context, revision int64) (view sqlstore.View, now int64, err error) {
	now = s.revision()
	if revision > now {
		return nil, 0, rpctypes.ErrGRPCFutureRev
	}
	if revision <= 0 || revision == now {
		view = s.store.Current("")
		id, _ := changelog.Split(view.Revision())
		if id = max(id, firstRevision); revision <= 0 || revision == id {
			return view, id, nil
		}
		now = id
	}
	view, err = s.store.Keys().AtRevision(ctx, revision)
	return view, now, err
}

// viewKeys are the keys in a view of the Store.
type viewKeys struct {
	ctx  context.Context
	view sqlstore.View
}

func (k viewKeys) get(key string) (*sqlstore.Entry, error) { return k.view.Get(k.ctx, key) }

func (k viewKeys) scan(from, to string, f func(*sqlstore.Entry) bool) error {
	n := 0
	err := k.view.Scan(k.ctx, from, to, func(e *sqlstore.Entry) bool {
		if n++; n%4096 == 0 && k.ctx.Err() != nil {
			return false
		}
		return f(e)
	})
	return errors.Join(err, k.ctx.Err())
}

func (k viewKeys) count(from, to string) (int64, error) { return k.view.Count(k.ctx, from, to) }

// answerRange answers r, step by step as etcd does: the limit applies to the keys that are read only if r has
// neither order nor filters, and it always applies to the answer; the count is that before filters.
func answerRange(
	header *pb.ResponseHeader, entries []*sqlstore.Entry, count int64, get valuesOf, r *pb.RangeRequest,
) (*pb.RangeResponse, error) {
	entries = filtered(entries, r)
	var values [][]byte
	var err error
	if r.SortTarget == pb.RangeRequest_VALUE && len(entries) > 1 {
		if values, err = get(entries); err != nil {
			return nil, err
		}
	}
	sortEntries(entries, values, r)
	resp := &pb.RangeResponse{Header: header, Count: count}
	if r.Limit > 0 && int64(len(entries)) > r.Limit {
		entries, resp.More = entries[:r.Limit], true
	}
	switch {
	case r.KeysOnly:
		values = nil
	case values == nil && len(entries) > 0:
		if values, err = get(entries); err != nil {
			return nil, err
		}
	}
	if r.KeysOnly && r.SortTarget != pb.RangeRequest_VALUE {
		resp.Kvs = keysOnly(entries)
	} else {
		resp.Kvs = keyValues(entries, values)
	}
	return resp, nil
}

// selectEntries returns the entries that r reads, in order of keys, and the number of keys.
func selectEntries(k keys, at span, r *pb.RangeRequest) ([]*sqlstore.Entry, int64, error) {
	switch {
	case at.one:
		e, err := k.get(at.from)
		entries, count := oneEntry(e, r)
		return entries, count, err
	case at.from >= at.to:
		return nil, 0, nil
	case r.CountOnly:
		count, err := k.count(at.from, at.to)
		return nil, count, err
	}
	return scanEntries(k, at, readLimit(r))
}

func oneEntry(e *sqlstore.Entry, r *pb.RangeRequest) ([]*sqlstore.Entry, int64) {
	switch {
	case e == nil:
		return nil, 0
	case r.CountOnly:
		return nil, 1
	}
	return []*sqlstore.Entry{e}, 1
}

// scanEntries returns at most limit entries, and the number of all.
func scanEntries(k keys, at span, limit int64) ([]*sqlstore.Entry, int64, error) {
	var entries []*sqlstore.Entry
	if limit < math.MaxInt64 {
		entries = make([]*sqlstore.Entry, 0, min(limit, 1024))
	}
	err := k.scan(at.from, at.to, func(e *sqlstore.Entry) bool {
		entries = append(entries, e)
		return int64(len(entries)) < limit
	})
	count := int64(len(entries))
	if err == nil && count == limit {
		count, err = k.count(at.from, at.to)
	}
	return entries, count, err
}

// readLimit returns how many entries to read for r: one more than its limit, to know whether there are more.
func readLimit(r *pb.RangeRequest) int64 {
	if r.Limit <= 0 || r.Limit == math.MaxInt64 || r.SortOrder != pb.RangeRequest_NONE || filters(r) {
		return math.MaxInt64
	}
	return r.Limit + 1
}

func filters(r *pb.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

func filtered(entries []*sqlstore.Entry, r *pb.RangeRequest) []*sqlstore.Entry {
	if !filters(r) {
		return entries
	}
	return slices.DeleteFunc(entries, func(e *sqlstore.Entry) bool {
		mod, create := modRevision(e), createRevision(e)
		return r.MaxModRevision != 0 && mod > r.MaxModRevision ||
			r.MinModRevision != 0 && mod < r.MinModRevision ||
			r.MaxCreateRevision != 0 && create > r.MaxCreateRevision ||
			r.MinCreateRevision != 0 && create < r.MinCreateRevision
	})
}

// sortEntries sorts entries, which are in order of keys, as r requires. For a target other than the key, the
// default order is ascending. Equal entries come in the same order as from etcd, because etcd uses sort.Sort,
// too.
func sortEntries(entries []*sqlstore.Entry, values [][]byte, r *pb.RangeRequest) {
	descend := r.SortOrder == pb.RangeRequest_DESCEND
	if r.SortTarget == pb.RangeRequest_KEY {
		if descend {
			slices.Reverse(entries)
		}
		return
	}
	var order sort.Interface = &entryOrder{entries, values, r.SortTarget}
	if descend {
		order = sort.Reverse(order)
	}
	sort.Sort(order)
}

type entryOrder struct {
	entries []*sqlstore.Entry
	values  [][]byte // values of the entries, only for this target
	target  pb.RangeRequest_SortTarget
}

func (o *entryOrder) Len() int { return len(o.entries) }

func (o *entryOrder) Swap(i, j int) {
	o.entries[i], o.entries[j] = o.entries[j], o.entries[i]
	if o.values != nil {
		o.values[i], o.values[j] = o.values[j], o.values[i]
	}
}

func (o *entryOrder) Less(i, j int) bool {
	a, b := o.entries[i], o.entries[j]
	switch o.target {
	case pb.RangeRequest_VERSION:
		return a.Version() < b.Version()
	case pb.RangeRequest_CREATE:
		return createRevision(a) < createRevision(b)
	case pb.RangeRequest_MOD:
		return modRevision(a) < modRevision(b)
	default:
		return bytes.Compare(o.values[i], o.values[j]) < 0
	}
}

func modRevision(e *sqlstore.Entry) int64    { return e.Revision >> changelog.SubBits }
func createRevision(e *sqlstore.Entry) int64 { return e.CreateRevision >> changelog.SubBits }

// keyValues returns entries in the form of answers, without values if values is nil. The number of
// allocations does not depend on the number of entries.
func keyValues(entries []*sqlstore.Entry, values [][]byte) []*mvccpb.KeyValue {
	if len(entries) == 0 {
		return nil
	}
	size := 0
	for _, e := range entries {
		size += len(e.Key)
	}
	names := make([]byte, 0, size)
	kvs := make([]mvccpb.KeyValue, len(entries))
	out := make([]*mvccpb.KeyValue, len(entries))
	for i, e := range entries {
		begin := len(names)
		names = append(names, e.Key...)
		kv := &kvs[i]
		kv.Key = names[begin:len(names):len(names)]
		kv.ModRevision, kv.CreateRevision = modRevision(e), createRevision(e)
		kv.Version, kv.Lease = e.Version(), e.Lease()
		if values != nil {
			kv.Value = values[i]
		}
		out[i] = kv
	}
	return out
}

// keysOnly returns entries without values and leases, because etcd answers these from its index, which has no
// leases.
func keysOnly(entries []*sqlstore.Entry) []*mvccpb.KeyValue {
	kvs := keyValues(entries, nil)
	for _, kv := range kvs {
		kv.Lease = 0
	}
	return kvs
}

// keyValue returns one entry in the form of answers.
func keyValue(e *sqlstore.Entry, value []byte) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key: []byte(e.Key), Value: value,
		ModRevision: modRevision(e), CreateRevision: createRevision(e),
		Version: e.Version(), Lease: e.Lease(),
	}
}
