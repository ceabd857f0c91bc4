package etcd

import (
	"context"
	"errors"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// A stream of a range is Range in parts of one revision, which together are the answer of Range. The last
// part has everything except keys. Between two parts, only the revision is held, so that a client that does
// not read has at most two parts in memory, however many keys there are: each part is read like the next page
// of a list.

const (
	streamPart     = 256 << 10 // target size of a part in bytes
	streamOverhead = 48        // the most bytes of it that a key and its value take in addition to their own
	streamKeys     = 4096      // keys in a part while the sizes of their values are unknown
)

// RangeStream implements pb.KVServer.
func (s kvService) RangeStream(r *pb.RangeRequest, stream grpc.ServerStreamingServer[pb.RangeStreamResponse]) error {
	if err := checkRangeStream(r); err != nil {
		return err
	}
	ctx := stream.Context()
	if !r.Serializable {
		if _, err := s.store.Sync(ctx); err != nil {
			return toStatus(err)
		}
	}
	send := func(part *pb.RangeResponse) error {
		return stream.Send(&pb.RangeStreamResponse{RangeResponse: part})
	}
	if err := s.streamRange(ctx, r, send); err != nil {
		return toStatus(err)
	}
	s.metrics.requests.ranges.Inc()
	return nil
}

// checkRangeStream refuses a range that can only be answered after all keys have been read. etcd accepts a
// target without an order; it then sorts within each part, and loses keys between parts.
func checkRangeStream(r *pb.RangeRequest) error {
	if err := checkRange(r); err != nil {
		return err
	}
	if r.SortTarget != pb.RangeRequest_KEY || r.SortOrder == pb.RangeRequest_DESCEND {
		return status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	}
	if filters(r) {
		return status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
	}
	return nil
}

func (s *Server) streamRange(ctx context.Context, r *pb.RangeRequest, send func(*pb.RangeResponse) error) error {
	at := spanOf(r.Key, r.RangeEnd)
	if at.one || r.CountOnly {
		resp, err := s.readRange(ctx, r)
		if err != nil {
			return err
		}
		return send(resp)
	}
	st := &rangeStream{s: s, at: at, revision: r.Revision, left: r.Limit, keysOnly: r.KeysOnly}
	if st.left <= 0 {
		st.left = math.MaxInt64
	}
	for try := 1; ; {
		part, err := st.next(ctx)
		if errors.Is(err, changelog.ErrCompacted) && st.sent == 0 && r.Revision <= 0 && try < rereads {
			st.revision = r.Revision // begin again, as readRange does
			try++
			continue
		}
		if err != nil {
			return err
		}
		if err := send(part); err != nil || part.Header != nil {
			return err
		}
	}
}

// rangeStream is the progress of a stream.
type rangeStream struct {
	s        *Server
	at       span  // the keys that remain
	revision int64 // revision of all parts; if the request has none, the first part sets it
	header   int64 // the newest revision when the first part was read
	left     int64 // keys that may still be sent
	sent     int64 // keys that were sent
	keysOnly bool
}

// next returns the next part. The last part has a header.
func (st *rangeStream) next(ctx context.Context) (*pb.RangeResponse, error) {
	view, now, err := st.s.viewAt(ctx, st.revision)
	if err != nil {
		return nil, err
	}
	if st.sent == 0 {
		st.header = now
	}
	if st.revision <= 0 {
		st.revision = now
	}
	k := viewKeys{ctx, view}
	kvs, more, err := st.read(k)
	if err != nil {
		return nil, err
	}
	if more && st.sent == 0 {
		st.s.store.Keep(view) // the next part needs the same revision
	}
	part := &pb.RangeResponse{Kvs: kvs}
	st.sent += int64(len(kvs))
	st.left -= int64(len(kvs))
	if more {
		st.at.from = string(kvs[len(kvs)-1].Key) + "\x00"
	}
	if more && st.left > 0 {
		return part, nil
	}
	part.Header, part.More, part.Count = st.s.header(st.header), more, st.sent
	if more {
		rest, err := k.count(st.at.from, st.at.to)
		if err != nil {
			return nil, err
		}
		part.Count += rest
	}
	return part, nil
}

// read reads the keys of a part, and reports whether there are more.
func (st *rangeStream) read(k viewKeys) (kvs []*mvccpb.KeyValue, more bool, err error) {
	var entries []*sqlstore.Entry
	size := 0
	err = k.scan(st.at.from, st.at.to, func(e *sqlstore.Entry) bool {
		size += len(e.Key) + streamOverhead
		if !st.keysOnly {
			value, _ := e.ValueBytes()
			size += value
		}
		n := len(entries)
		more = int64(n) == st.left || n == streamKeys || n > 0 && size > streamPart
		if !more {
			entries = append(entries, e)
		}
		return !more
	})
	if err != nil {
		return nil, false, err
	}
	if st.keysOnly {
		return keysOnly(entries), more, nil
	}
	values, err := st.s.someValues(k.ctx, entries, streamPart)
	if err != nil {
		return nil, false, err
	}
	return keyValues(entries[:len(values)], values), more || len(values) < len(entries), nil
}

// someValues reads the values of entries until they have enough bytes. If their sizes are unknown, it
// estimates them by the first values, and may read more.
func (s *Server) someValues(ctx context.Context, entries []*sqlstore.Entry, most int) ([][]byte, error) {
	n := firstValues
	if _, known := valueBytes(entries); known {
		n = len(entries)
	}
	values, bytes := make([][]byte, 0, len(entries)), 0
	for len(values) < len(entries) && bytes < most {
		part, err := s.store.Keys().Values(ctx, entries[len(values):min(len(values)+n, len(entries))])
		if err != nil {
			return nil, err
		}
		for _, value := range part {
			bytes += len(value)
		}
		values = append(values, part...)
		n = max(1, (most-bytes)/(bytes/len(values)+1))
	}
	return values, nil
}
