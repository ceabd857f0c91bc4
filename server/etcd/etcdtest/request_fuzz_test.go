package etcdtest_test

import (
	"context"
	"reflect"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// fuzzed are the requests that are one message with one answer.
var fuzzed = []struct {
	method  string
	request etcdtest.Message
	answer  any
}{
	{"/etcdserverpb.KV/Range", &pb.RangeRequest{}, &pb.RangeResponse{}},
	{"/etcdserverpb.KV/Put", &pb.PutRequest{}, &pb.PutResponse{}},
	{"/etcdserverpb.KV/DeleteRange", &pb.DeleteRangeRequest{}, &pb.DeleteRangeResponse{}},
	{"/etcdserverpb.KV/Txn", &pb.TxnRequest{}, &pb.TxnResponse{}},
	{"/etcdserverpb.KV/Compact", &pb.CompactionRequest{}, &pb.CompactionResponse{}},
	{"/etcdserverpb.Lease/LeaseGrant", &pb.LeaseGrantRequest{}, &pb.LeaseGrantResponse{}},
	{"/etcdserverpb.Lease/LeaseRevoke", &pb.LeaseRevokeRequest{}, &pb.LeaseRevokeResponse{}},
	{"/etcdserverpb.Lease/LeaseTimeToLive", &pb.LeaseTimeToLiveRequest{}, &pb.LeaseTimeToLiveResponse{}},
	{"/etcdserverpb.Maintenance/HashKV", &pb.HashKVRequest{}, &pb.HashKVResponse{}},
}

// FuzzRequest sends any message that can be read as a request. The answer is an answer, or an error of
// etcd's, never that the server is broken, and the server goes on.
func FuzzRequest(f *testing.F) {
	for _, s := range etcdtest.Generate(7, 400) {
		b, err := proto.Marshal(s.Request)
		if err != nil {
			f.Fatal(err)
		}
		for i, k := range fuzzed {
			if reflect.TypeOf(k.request) == reflect.TypeOf(s.Request) {
				f.Add(uint8(i), b)
			}
		}
	}
	f.Add(uint8(3), deep(f, 200))
	conn := etcdtest.Dial(f, servePlinth(f, "sqlite://:memory:", sqlstore.Options{}))
	kv := pb.NewKVClient(conn)
	var newest int64
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		k := fuzzed[int(kind)%len(fuzzed)]
		request := reflect.New(reflect.TypeOf(k.request).Elem()).Interface().(etcdtest.Message)
		if proto.Unmarshal(b, request) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
		defer cancel()
		answer := reflect.New(reflect.TypeOf(k.answer).Elem()).Interface()
		switch code := status.Code(conn.Invoke(ctx, k.method, request, answer)); code {
		case codes.OK, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange, codes.ResourceExhausted:
		default:
			t.Errorf("%s %s: %s", k.method, request, code)
		}
		after, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte("a"), CountOnly: true})
		if err != nil || after.Header.Revision < newest {
			t.Fatalf("afterwards: %v, %v; revision was %d", after, err, newest)
		}
		newest = after.Header.Revision
	})
}

// deep is a transaction in a transaction in a transaction.
func deep(t testing.TB, depth int) []byte {
	r := &pb.TxnRequest{}
	for range depth {
		r = &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: r}}}}
	}
	b, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
