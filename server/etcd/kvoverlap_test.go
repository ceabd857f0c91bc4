package etcd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// The rules of checkOverlaps, written down as plainly as possible.
type plainWrites struct {
	puts    map[string]bool
	deletes [][2]string
}

func (w *plainWrites) deletesKey(key string) bool {
	for _, d := range w.deletes {
		if d[0] <= key && key < d[1] {
			return true
		}
	}
	return false
}

func plainWritesOf(ops []*pb.RequestOp) (*plainWrites, bool) {
	w := &plainWrites{puts: make(map[string]bool)}
	for _, op := range ops {
		if r := op.GetRequestDeleteRange(); r != nil {
			w.deletes = append(w.deletes, [2]string{string(r.Key), endOf(r)})
		}
	}
	for _, op := range ops {
		nested := op.GetRequestTxn()
		if nested == nil {
			continue
		}
		yes, good := plainWritesOf(nested.Success)
		if !good {
			return nil, false
		}
		no, good := plainWritesOf(nested.Failure)
		if !good {
			return nil, false
		}
		for _, branch := range []*plainWrites{yes, no} {
			for key := range branch.puts {
				if w.puts[key] || w.deletesKey(key) {
					return nil, false
				}
			}
		}
		for _, branch := range []*plainWrites{yes, no} {
			for key := range branch.puts {
				w.puts[key] = true
			}
			w.deletes = append(w.deletes, branch.deletes...)
		}
	}
	for _, op := range ops {
		if r := op.GetRequestPut(); r != nil {
			if w.puts[string(r.Key)] || w.deletesKey(string(r.Key)) {
				return nil, false
			}
			w.puts[string(r.Key)] = true
		}
	}
	return w, true
}

func TestOverlapsModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	const rounds = 20_000
	for range rounds {
		r := &pb.TxnRequest{Success: randomOps(random, 3, 12), Failure: randomOps(random, 2, 12)}
		_, yes := plainWritesOf(r.Success)
		_, no := plainWritesOf(r.Failure)
		if err := checkOverlaps(r); (err == nil) != (yes && no) {
			t.Fatalf("good: %t, but the error is %v, for\n%v", yes && no, err, r)
		}
		if !yes || !no {
			refused++
		}
	}
	if refused < rounds/10 || refused > rounds*9/10 {
		t.Errorf("%d of %d transactions were refused, which tests little", refused, rounds)
	}
}

func randomOps(random *rand.Rand, depth, keys int) (out []*pb.RequestOp) {
	key := func() string { return fmt.Sprintf("k%02d", random.IntN(keys)) }
	for range random.IntN(4) {
		switch n := random.IntN(10); {
		case n < 5:
			out = append(out, kvOp(kvPut(key(), "")))
		case n < 6:
			out = append(out, kvOp(kvDel(key(), "")))
		case n < 7:
			out = append(out, kvOp(kvDel(key(), key())))
		case depth > 0:
			out = append(out, kvOp(&pb.TxnRequest{
				Success: randomOps(random, depth-1, keys*2), Failure: randomOps(random, depth-1, keys*2),
			}))
		}
	}
	return out
}

// hostileTxn has as many nested puts as a request has room for, below as many levels as there may be,
// each of which puts and deletes something as well.
func hostileTxn(levels int) *pb.TxnRequest {
	n := 0
	key := func() string {
		n++
		return fmt.Sprintf("%06d", n)
	}
	var leaves func(depth int) *pb.TxnRequest
	leaves = func(depth int) *pb.TxnRequest {
		if depth == 0 {
			return kvTxn(kvPut(key(), ""), kvPut(key(), ""))
		}
		return kvTxn(leaves(depth-1), leaves(depth-1))
	}
	r := leaves(14)
	for range levels {
		r = kvTxn(r, kvPut(key(), ""), kvDel(key(), ""))
	}
	return r
}

func TestHostileTxn(t *testing.T) {
	r := hostileTxn(30)
	if err := checkTxn(r, 128); err != nil {
		t.Fatal(err)
	}
	if err := checkOverlaps(r); err != nil {
		t.Fatal(err)
	}
	deepest := r
	for deepest.Success[0].GetRequestTxn() != nil {
		deepest = deepest.Success[0].GetRequestTxn()
	}
	deepest.Success = append(deepest.Success, kvOp(kvPut("000002", "")))
	if err := checkOverlaps(r); err == nil {
		t.Error("a key that the deepest transaction puts twice was not found")
	}
}

func BenchmarkCheckOverlaps(b *testing.B) {
	for _, bench := range []struct {
		name string
		r    *pb.TxnRequest
	}{
		{"create", kvTxnIf(kvIfs(kvExists("a")), []any{kvPut("a", "")}, []any{kvGet("a", "")})},
		{"hostile", hostileTxn(30)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := checkOverlaps(bench.r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
