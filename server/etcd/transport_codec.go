package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers what codec falls back to
	"google.golang.org/grpc/mem"
)

// codec encodes the messages of etcd by their own methods. gRPC's codec does not know these, and
// encodes such a message twice, the first time to learn its size.
type codec struct {
	other   encoding.CodecV2 // for messages of other services
	metrics *requestMetrics
}

func newCodec(m *requestMetrics) codec { return codec{encoding.GetCodecV2("proto"), m} }

// buffers are for messages on their way to clients. gRPC's own pool has none between 32 KiB and 1 MiB, and thousands
// of watches that have a message of 100 KiB each waiting would take ten times that.
var buffers = mem.NewTieredBufferPool(256, 1<<10, 4<<10, 8<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20, 2<<20)

// outgoing and incoming are what messages of etcd are.
type outgoing interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
}

type incoming interface {
	Reset()
	Unmarshal(from []byte) error
}

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(outgoing)
	if !ok {
		data, err := c.other.Marshal(v)
		c.metrics.sent.Add(int64(data.Len()))
		return data, err
	}
	if t, ok := v.(*tracked); ok {
		defer t.place.encoded()
	}
	size := m.Size()
	c.metrics.sent.Add(int64(size))
	if mem.IsBelowBufferPoolingThreshold(size) {
		into := make([]byte, size)
		_, err := m.MarshalToSizedBuffer(into)
		return mem.BufferSlice{mem.SliceBuffer(into)}, err
	}
	var pool mem.BufferPool = buffers
	if t, ok := v.(*tracked); ok {
		if sent := t.count(size); sent != nil {
			pool = onFree{pool, sent}
		}
	}
	into := pool.Get(size)
	if _, err := m.MarshalToSizedBuffer((*into)[:size]); err != nil {
		pool.Put(into)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(into, pool)}, nil
}

// Unmarshal implements encoding.CodecV2. Messages of etcd keep nothing of data.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	c.metrics.received.Add(int64(data.Len()))
	m, ok := v.(incoming)
	if !ok {
		return c.other.Unmarshal(data, v)
	}
	from := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer from.Free()
	m.Reset()
	if r, ok := v.(*pb.TxnRequest); ok && refuseDeep(r, from.ReadOnlyData()) {
		return nil
	}
	return m.Unmarshal(from.ReadOnlyData())
}
