package etcd

import (
	"fmt"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func kvCreate(key string, value []byte) *pb.TxnRequest {
	p := &pb.PutRequest{Key: []byte(key), Value: value}
	missing := &pb.Compare{Key: p.Key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{}}
	return kvTxnIf(kvIfs(missing), []any{p}, []any{&pb.RangeRequest{Key: p.Key}})
}

// BenchmarkCreate is what kube-apiserver does to create an object: by 64 callers, without gRPC and
// through one connection.
func BenchmarkCreate(b *testing.B) {
	m := startMember(b, inMemory, Options{})
	kv := pb.NewKVClient(m.conn)
	value := make([]byte, 512)
	var n atomic.Int64
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := (kvService{Server: m.Server}).Txn(b.Context(), kvCreate(fmt.Sprint("/registry/pods/default/", n.Add(1)), value)); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("grpc", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := kv.Txn(b.Context(), kvCreate(fmt.Sprint("/registry/pods/default/", n.Add(1)), value)); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// BenchmarkRange reads of 10,000 keys.
func BenchmarkRange(b *testing.B) {
	m := startMember(b, inMemory, Options{})
	kv := kvService{Server: m.Server}
	kvFill(b, m, 10_000, make([]byte, 1024))
	page := func(r *pb.RangeRequest) {
		r.Limit = 500
	}
	for _, bench := range []struct {
		name string
		r    *pb.RangeRequest
	}{
		{"key", kvGet("/k/005000", "")},
		{"page", kvGetBy("/k/002000", "/l", page)},
		{"all", kvGet("/k/", "/l")},
		{"keys only", kvGetBy("/k/", "/l", func(r *pb.RangeRequest) { r.KeysOnly = true })},
		{"count", kvGetBy("/k/", "/l", func(r *pb.RangeRequest) { r.CountOnly = true })},
		{"last", kvGetBy("/k/", "/l", func(r *pb.RangeRequest) { r.SortOrder, r.Limit = pb.RangeRequest_DESCEND, 1 })},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := kv.Range(b.Context(), bench.r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+" grpc", func(b *testing.B) {
			client := pb.NewKVClient(m.conn)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Range(b.Context(), bench.r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fill puts the keys /k/000000 and so on, in transactions of 100.
func kvFill(t testing.TB, m *member, n int, value []byte) {
	t.Helper()
	for i := 0; i < n; i += 100 {
		var puts []any
		for j := i; j < min(i+100, n); j++ {
			puts = append(puts, &pb.PutRequest{Key: fmt.Appendf(nil, "/k/%06d", j), Value: value})
		}
		if _, err := (kvService{Server: m.Server}).Txn(t.Context(), kvTxn(puts...)); err != nil {
			t.Fatal(err)
		}
	}
}
