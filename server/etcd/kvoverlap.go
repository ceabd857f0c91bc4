package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/tidwall/btree"
)

// checkOverlaps refuses a transaction that could write a key twice, as far as etcd does:
//
//   - a key put twice, but for once in each branch of one nested transaction;
//   - a key put and deleted by the same list of operations, or put there by a nested one, whatever
//     their order;
//   - a key deleted by one nested transaction and put by a later one.
//
// A deletion from a key on has the end "\x00" and therefore overlaps with nothing: etcd takes that
// end as it is, and so do we.
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

// writes are the keys that a list of operations may put, and the ranges that it may delete. Two
// of them are always merged into the larger one, so that any nesting takes O(n log² n).
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

// withNested returns w and what a nested transaction writes in either branch.
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

// clash says whether nested puts a key that w puts or deletes. It takes steps in proportion to the
// smaller of the two.
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

// merged returns the union of a and b, in the place of the larger one.
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
