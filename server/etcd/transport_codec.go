package etcd

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers what codec is made of
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec is gRPC's own protobuf codec with buffers of other sizes, and with what is known of a message that is
// being sent.
type codec struct {
	encoding.CodecV2
	metrics *requestMetrics
}

func newCodec(m *requestMetrics) codec { return codec{encoding.GetCodecV2("proto"), m} }

// buffers are for messages that are being sent. gRPC's own pool has no size between 32 KiB and 1 MiB, so that
// thousands of watches with a waiting message of 100 KiB each would take ten times the memory.
var buffers = mem.NewTieredBufferPool(256, 1<<10, 4<<10, 8<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20, 2<<20)

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Marshal(v) // returns that error
	}
	t, isTracked := v.(*tracked)
	if isTracked {
		m = t.Message
		defer t.place.encoded()
	}
	size := proto.Size(m)
	c.metrics.sent.Add(int64(size))
	encode := proto.MarshalOptions{UseCachedSize: true} // computed above
	if mem.IsBelowBufferPoolingThreshold(size) {
		data, err := encode.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}
	var pool mem.BufferPool = buffers
	if isTracked {
		if sent := t.count(size); sent != nil {
			pool = onFree{pool, sent}
		}
	}
	into := pool.Get(size)
	if _, err := encode.MarshalAppend((*into)[:0], m); err != nil {
		pool.Put(into)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(into, pool)}, nil
}

// Unmarshal implements encoding.CodecV2. What it makes keeps nothing of data.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	c.metrics.received.Add(int64(data.Len()))
	return c.CodecV2.Unmarshal(data, v)
}
