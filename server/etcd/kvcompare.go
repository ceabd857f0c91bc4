package etcd

import (
	"bytes"
	"cmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/plinth-io/plinth/sqlstore"
)

// holds reports whether all comparisons hold.
func (x *txnRun) holds(all []*pb.Compare) (bool, error) {
	for _, c := range all {
		if ok, err := x.compare(c); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// compare reports whether c holds for all keys of its range. A missing key has zero for all its numbers and
// no value: no comparison of values holds for it.
func (x *txnRun) compare(c *pb.Compare) (holds bool, err error) {
	at := spanOf(c.Key, c.RangeEnd)
	if at.one {
		if e := x.tx.Get(at.from); e != nil {
			return x.compareEntry(c, e), nil
		}
		return compareAbsent(c), nil
	}
	found := false
	err = x.scan(at.from, at.to, func(e *sqlstore.Entry) bool {
		found, holds = true, x.compareEntry(c, e)
		return holds
	})
	if !found {
		holds = compareAbsent(c)
	}
	return holds, err
}

func (x *txnRun) compareEntry(c *pb.Compare, e *sqlstore.Entry) bool {
	if c.Target != pb.Compare_VALUE {
		return resultHolds(c, cmp.Compare(numberOf(c, e), wanted(c)))
	}
	value, ok := x.tx.Value(e)
	return !ok || resultHolds(c, bytes.Compare(value, c.GetValue()))
}

func compareAbsent(c *pb.Compare) bool {
	return c.Target != pb.Compare_VALUE && resultHolds(c, cmp.Compare(0, wanted(c)))
}

// numberOf returns the number of e that c compares, and wanted returns the number that c compares it with: 0
// if c has none. For an unknown target, both are 0.
func numberOf(c *pb.Compare, e *sqlstore.Entry) int64 {
	switch c.Target {
	case pb.Compare_CREATE:
		return createRevision(e)
	case pb.Compare_MOD:
		return modRevision(e)
	case pb.Compare_VERSION:
		return e.Version()
	case pb.Compare_LEASE:
		return e.Lease()
	}
	return 0
}

func wanted(c *pb.Compare) int64 {
	switch c.Target {
	case pb.Compare_CREATE:
		return c.GetCreateRevision()
	case pb.Compare_MOD:
		return c.GetModRevision()
	case pb.Compare_VERSION:
		return c.GetVersion()
	case pb.Compare_LEASE:
		return c.GetLease()
	}
	return 0
}

// resultHolds reports whether result has the sign that c requires. An unknown relation always holds.
func resultHolds(c *pb.Compare, result int) bool {
	switch c.Result {
	case pb.Compare_EQUAL:
		return result == 0
	case pb.Compare_NOT_EQUAL:
		return result != 0
	case pb.Compare_GREATER:
		return result > 0
	case pb.Compare_LESS:
		return result < 0
	}
	return true
}
