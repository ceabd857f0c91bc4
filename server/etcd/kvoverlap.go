package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/tidwall/btree"
)

// checkOverlaps refuses a transaction that could write a key twice, in the cases in which etcd does:
//
//   - a key is put twice, except once in each branch of one nested transaction;
//   - a key is put and deleted by the same list of operations, or put by a nested transaction in it, in
//     any order;
//   - a key is deleted by one nested transaction and put by a later one.
//
// A deletion of all keys from a key on has the end "\x00", and therefore overlaps with nothing: etcd compares
// that end literally, and so does this function.
func checkOverlaps(r *pb.TxnRequest) error {
	for _, ops := range [...][]*pb.RequestOp{r.Success, r.Failure} {
		if len(ops) < 2 && !nests(ops) {
			continue
		}
		if _, err := writesOf(ops); err != nil {
			return err
		}
	}
	return nil
}

func nests(ops []*pb.RequestOp) bool {
	for _, op := range ops {
		if op.GetRequestTxn() != nil {
			return true
		}
	}
	return false
}

// writes are the keys that a list of operations may put, and the ranges that it may delete. Two of them are
// merged into the larger one, so that the cost is O(n log² n) for any nesting.
type writes struct {
	puts    btree.Set[string]
	deletes btree.Map[string, string] // from to end; ranges that overlap or touch are one
}

func (w *writes) size() int { return w.puts.Len() + w.deletes.Len() }

func writesOf(ops []*pb.RequestOp) (*writes, error) {
	w := new(writes)
	for _, op := range ops {
		if r := op.GetRequestDeleteRange(); r != nil {
			w.addDelete(string(r.Key), endOf(r))
		}
	}
	for _, op := range ops {
		if r := op.GetRequestTxn(); r != nil {
			var err error
			if w, err = w.withNested(r); err != nil {
				return nil, err
			}
		}
	}
	for _, op := range ops {
		if r := op.GetRequestPut(); r != nil {
			key := string(r.Key)
			if w.puts.Contains(key) || w.deletesKey(key) {
				return nil, rpctypes.ErrGRPCDuplicateKey
			}
			w.puts.Insert(key)
		}
	}
	return w, nil
}

func endOf(r *pb.DeleteRangeRequest) string {
	if len(r.RangeEnd) == 0 {
		return string(r.Key) + "\x00"
	}
	return string(r.RangeEnd)
}

// withNested returns w together with the writes of both branches of a nested transaction.
func (w *writes) withNested(r *pb.TxnRequest) (*writes, error) {
	yes, err := writesOf(r.Success)
	if err != nil {
		return nil, err
	}
	no, err := writesOf(r.Failure)
	if err != nil {
		return nil, err
	}
	if w.clash(yes) || w.clash(no) {
		return nil, rpctypes.ErrGRPCDuplicateKey
	}
	return merged(w, merged(yes, no)), nil
}

// clash reports whether nested puts a key that w puts or deletes. Its cost is proportional to the smaller of
// the two.
func (w *writes) clash(nested *writes) bool {
	few, many := &w.puts, &nested.puts
	if few.Len() > many.Len() {
		few, many = many, few
	}
	found := false
	few.Scan(func(key string) bool {
		found = many.Contains(key)
		return !found
	})
	if found {
		return true
	}
	if nested.puts.Len() < w.deletes.Len() {
		nested.puts.Scan(func(key string) bool {
			found = w.deletesKey(key)
			return !found
		})
		return found
	}
	w.deletes.Scan(func(from, end string) bool {
		nested.puts.Ascend(from, func(key string) bool {
			found = key < end
			return false
		})
		return !found
	})
	return found
}

// merged returns the union of a and b. It changes the larger of them.
func merged(a, b *writes) *writes {
	if a.size() < b.size() {
		a, b = b, a
	}
	b.puts.Scan(func(key string) bool {
		a.puts.Insert(key)
		return true
	})
	b.deletes.Scan(func(from, end string) bool {
		a.addDelete(from, end)
		return true
	})
	return a
}

func (w *writes) deletesKey(key string) bool {
	found := false
	w.deletes.Descend(key, func(_, end string) bool {
		found = key < end
		return false
	})
	return found
}

func (w *writes) addDelete(from, end string) {
	if from >= end {
		return
	}
	w.deletes.Descend(from, func(f, e string) bool {
		if e >= from {
			from, end = f, max(end, e)
		}
		return false
	})
	var within []string
	w.deletes.Ascend(from, func(f, e string) bool {
		if f > end {
			return false
		}
		end = max(end, e)
		within = append(within, f)
		return true
	})
	for _, f := range within {
		w.deletes.Delete(f)
	}
	w.deletes.Set(from, end)
}
