package etcdtest

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// resolve replaces the relative revisions of m by the result of ago, which gets the distance to the newest
// revision; it is negative for future revisions.
func resolve(m Message, ago func(int64) int64) {
	at := func(revision *int64) {
		if *revision > head/2 && *revision < head*2 {
			*revision = ago(head - *revision)
		}
	}
	switch r := m.(type) {
	case *pb.RangeRequest:
		for _, revision := range []*int64{&r.Revision, &r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision} {
			at(revision)
		}
	case *pb.CompactionRequest:
		at(&r.Revision)
	case *pb.HashKVRequest:
		at(&r.Revision)
	case *pb.WatchRequest:
		if c := r.GetCreateRequest(); c != nil {
			at(&c.StartRevision)
		}
	case *pb.TxnRequest:
		for _, c := range r.Compare {
			switch u := c.TargetUnion.(type) {
			case *pb.Compare_CreateRevision:
				at(&u.CreateRevision)
			case *pb.Compare_ModRevision:
				at(&u.ModRevision)
			}
		}
		for _, op := range slices.Concat(r.Success, r.Failure) {
			if range_ := op.GetRequestRange(); range_ != nil {
				resolve(range_, ago)
			}
			if txn := op.GetRequestTxn(); txn != nil {
				resolve(txn, ago)
			}
		}
	}
}

// lateness is how much of a lease's time, in seconds, may pass during a test.
const lateness = 1000

var memberID = regexp.MustCompile(`memberID:\d+`)

// level removes from an answer what differs between servers and between moments.
func level(a answer, member uint64) {
	switch a := a.(type) {
	case *pb.TxnResponse:
		for _, r := range a.Responses {
			levelOperation(r)
		}
	case *pb.LeaseTimeToLiveResponse:
		slices.SortFunc(a.Keys, func(x, y []byte) int { return cmp.Compare(string(x), string(y)) })
		if a.TTL <= a.GrantedTTL && a.TTL > a.GrantedTTL-lateness {
			a.TTL = a.GrantedTTL
		}
	case *pb.LeaseLeasesResponse:
		slices.SortFunc(a.Leases, func(x, y *pb.LeaseStatus) int { return cmp.Compare(x.ID, y.ID) })
	case *pb.StatusResponse:
		if a.DbSize > 0 && a.DbSizeInUse > 0 && a.DbSizeInUse <= a.DbSize && a.Leader == member && a.RaftIndex > 0 && a.RaftTerm > 0 {
			a.DbSize, a.DbSizeInUse, a.Leader, a.RaftIndex, a.RaftTerm, a.RaftAppliedIndex = 1, 1, 1, 1, 1, 1
		}
		for i, e := range a.Errors {
			// protobuf's text format has one space or two, depending on the program.
			a.Errors[i] = strings.ReplaceAll(memberID.ReplaceAllString(e, "memberID:1"), "  ", " ")
		}
	case *pb.AlarmResponse:
		for _, m := range a.Alarms {
			if m.MemberID == member {
				m.MemberID = 1
			}
		}
	}
}

// levelOperation removes the ids from the headers in a transaction's answer.
func levelOperation(r *pb.ResponseOp) {
	var h *pb.ResponseHeader
	switch o := r.Response.(type) {
	case *pb.ResponseOp_ResponseRange:
		h = o.ResponseRange.GetHeader()
	case *pb.ResponseOp_ResponsePut:
		h = o.ResponsePut.GetHeader()
	case *pb.ResponseOp_ResponseDeleteRange:
		h = o.ResponseDeleteRange.GetHeader()
	case *pb.ResponseOp_ResponseTxn:
		h = o.ResponseTxn.GetHeader()
		for _, inner := range o.ResponseTxn.GetResponses() {
			levelOperation(inner)
		}
	}
	if h != nil {
		h.ClusterId, h.MemberId, h.RaftTerm = 0, 0, 0
	}
}

func sortedKeys(ms ...map[string][]string) []string {
	all := map[string]bool{}
	for _, m := range ms {
		for k := range m {
			all[k] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// isNil reports whether x is nil or holds a nil pointer.
func isNil(x any) bool { return x == nil || reflect.ValueOf(x).IsNil() }
