package etcd

import (
	"context"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/plinth-io/plinth/sqlstore"
)

// The answer to a range is one message of any size: its values are in memory, and once more as the encoded
// message. So only a few large answers are in memory at a time; the others wait before they read more. An
// answer holds a place from when it is known to be large until its message is sent, or until the outbox takes
// over.

const (
	largeAnswer   = 4 << 20 // bytes of values beyond which an answer needs a place
	largeAtOnce   = 2
	firstValues   = 16              // values that are read to estimate the size of all
	placePatience = 2 * time.Second // the longest time for which an encoded message holds its place
)

// places limits the number of large answers.
type places chan struct{}

func newPlaces() places { return make(places, largeAtOnce) }

// place is the place that a call may need.
type place struct {
	all   places
	taken atomic.Bool
}

type placeKey struct{}

// enter adds a place to the context of a call whose answer may be large. take then waits for it.
func (p places) enter(ctx context.Context, req any) (context.Context, *place) {
	if !mayBeLarge(req) {
		return ctx, nil
	}
	its := &place{all: p}
	return context.WithValue(ctx, placeKey{}, its), its
}

// mayBeLarge reports whether a request reads the values of a range of keys, possibly in a transaction.
func mayBeLarge(req any) bool {
	switch r := req.(type) {
	case *pb.RangeRequest:
		return r != nil && len(r.RangeEnd) > 0 && !r.KeysOnly && !r.CountOnly
	case *pb.TxnRequest:
		if r == nil {
			return false
		}
		for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
			for _, op := range ops {
				if mayBeLarge(op.GetRequestRange()) || mayBeLarge(op.GetRequestTxn()) || mayBeLarge(op.GetRequestDeleteRange()) {
					return true
				}
			}
		}
	case *pb.DeleteRangeRequest:
		return r != nil && r.PrevKv && len(r.RangeEnd) > 0
	}
	return false
}

// take waits for the place, unless the call holds it already.
func (p *place) take(ctx context.Context) error {
	if p.taken.Load() {
		return nil
	}
	if err := take(ctx, p.all); err != nil {
		return err
	}
	p.taken.Store(true)
	return nil
}

// leave releases the place, if it is held. It may be called more than once.
func (p *place) leave() {
	if p != nil && p.taken.Swap(false) {
		<-p.all
	}
}

// encoded is called when the message is encoded.
func (p *place) encoded() {
	if p != nil && p.taken.Load() {
		time.AfterFunc(placePatience, p.leave)
	}
}

// rangeValues reads the values of entries, in parts until it is known whether they are large.
func (s *Server) rangeValues(ctx context.Context, entries []*sqlstore.Entry) (values [][]byte, err error) {
	p, _ := ctx.Value(placeKey{}).(*place)
	if p == nil || len(entries) == 0 {
		return s.store.Keys().Values(ctx, entries)
	}
	bytes, n := 0, firstValues
	if known, all := valueBytes(entries); all {
		bytes, n = known, len(entries)
	}
	for values = make([][]byte, 0, len(entries)); len(values) < len(entries); {
		if bytes > largeAnswer {
			if err := p.take(ctx); err != nil {
				return nil, err
			}
			n = len(entries)
		}
		part, err := s.store.Keys().Values(ctx, entries[len(values):min(len(values)+n, len(entries))])
		if err != nil {
			return nil, err
		}
		for _, value := range part {
			bytes += len(value)
		}
		values = append(values, part...)
		n = max(firstValues, largeAnswer/(bytes/len(values)+1))
	}
	return values, nil
}

// valueBytes returns the size of the values of entries, and whether all sizes are known.
func valueBytes(entries []*sqlstore.Entry) (bytes int, all bool) {
	for _, e := range entries {
		size, known := e.ValueBytes()
		if !known {
			return 0, false
		}
		bytes += size
	}
	return bytes, true
}
