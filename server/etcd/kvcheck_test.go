package etcd

import (
	"encoding/binary"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
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

// asIs sends bytes as they are.
type asIs struct{}

func (asIs) Name() string                    { return "proto" }
func (asIs) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (asIs) Unmarshal(_ []byte, _ any) error { return nil }

var _ encoding.Codec = asIs{}

// TestDeepTxnOverTheWire: what is nested deeper than protobuf decodes is refused as etcd does, without the stack that it
// would take.
func TestDeepTxnOverTheWire(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	for levels, want := range map[int]codes.Code{129: codes.OK, 130: codes.InvalidArgument, 4_000: codes.InvalidArgument, 6_000: codes.Internal, 200_000: codes.Internal} {
		err := m.conn.Invoke(patiently(t), pb.KV_Txn_FullMethodName, nestedBytes(levels), new(pb.TxnResponse), grpc.ForceCodec(asIs{}))
		if got := status.Code(err); got != want {
			t.Errorf("%d levels: %v, want %v: %v", levels, got, want, err)
		}
	}
}
