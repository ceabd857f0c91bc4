package etcd

import (
	"encoding/binary"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
)

// nestedBytes encodes transactions in one another. It writes from the innermost one on, backwards.
func nestedBytes(levels int) []byte {
	const request, success = 4<<3 | 2, 2<<3 | 2
	var backwards []byte
	for range levels - 1 {
		for _, tag := range []byte{request, success} {
			size := binary.AppendUvarint(nil, uint64(len(backwards)))
			slices.Reverse(size)
			backwards = append(append(backwards, size...), tag)
		}
	}
	slices.Reverse(backwards)
	return backwards
}

func TestShallow(t *testing.T) {
	for _, levels := range []int{1, 2, 3, 50} {
		data := nestedBytes(levels)
		var r pb.TxnRequest
		if err := r.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if !shallow(data, levels) || shallow(data, levels-1) && levels > 1 {
			t.Errorf("%d levels are not counted as such", levels)
		}
	}
	broken := nestedBytes(5)
	if !shallow(broken[:len(broken)-1], 1) {
		t.Error("a message that cannot be decoded is called deep")
	}
}

// asIs sends bytes as they are.
type asIs struct{}

func (asIs) Name() string                    { return "proto" }
func (asIs) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (asIs) Unmarshal(_ []byte, _ any) error { return nil }

var _ encoding.Codec = asIs{}

func TestDeepTxnOverTheWire(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	for _, levels := range []int{129, 130, maxDepth, maxDepth + 1, 200_000} {
		err := m.conn.Invoke(patiently(t), "/etcdserverpb.KV/Txn", nestedBytes(levels), new(pb.TxnResponse), grpc.ForceCodec(asIs{}))
		want := ""
		if levels > 129 {
			want = "etcdserver: too many operations in txn request"
		}
		if got := status.Convert(err).Message(); got != want {
			t.Errorf("%d levels: %q, want %q", levels, got, want)
		}
	}
}
