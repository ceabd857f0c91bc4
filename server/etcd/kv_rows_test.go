package etcd

import (
	"fmt"
	"math"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func kvPut(key, value string) *pb.PutRequest {
	return &pb.PutRequest{Key: []byte(key), Value: []byte(value)}
}

func kvGet(key, end string) *pb.RangeRequest {
	r := &pb.RangeRequest{Key: []byte(key)}
	if end != "" {
		r.RangeEnd = []byte(end)
	}
	return r
}

func kvGetBy(key, end string, change func(*pb.RangeRequest)) *pb.RangeRequest {
	r := kvGet(key, end)
	change(r)
	return r
}

func kvDel(key, end string) *pb.DeleteRangeRequest {
	r := &pb.DeleteRangeRequest{Key: []byte(key), PrevKv: true}
	if end != "" {
		r.RangeEnd = []byte(end)
	}
	return r
}

// do is one operation of a transaction; nil says nothing.
func kvOp(r any) *pb.RequestOp {
	switch r := r.(type) {
	case *pb.RangeRequest:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
	case *pb.PutRequest:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
	case *pb.DeleteRangeRequest:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}}
	case *pb.TxnRequest:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: r}}
	}
	return &pb.RequestOp{}
}

func kvOps(requests ...any) (out []*pb.RequestOp) {
	for _, r := range requests {
		out = append(out, kvOp(r))
	}
	return out
}

func kvTxn(requests ...any) *pb.TxnRequest { return &pb.TxnRequest{Success: kvOps(requests...)} }

func kvTxnIf(compares []*pb.Compare, yes, no []any) *pb.TxnRequest {
	return &pb.TxnRequest{Compare: compares, Success: kvOps(yes...), Failure: kvOps(no...)}
}

func kvIfs(c ...*pb.Compare) []*pb.Compare { return c }

func kvExists(key string) *pb.Compare {
	return &pb.Compare{Key: []byte(key), Target: pb.Compare_VERSION, Result: pb.Compare_GREATER,
		TargetUnion: &pb.Compare_Version{Version: 0}}
}

// kvScripts are the scripts of TestKVAnswersAsEtcd, new each time because playing changes them.
func kvScripts() []kvScript {
	return []kvScript{
		{"empty", []any{
			kvGet("a", ""), kvGet("a", "\x00"), kvGet("\x00", "\x00"), kvGet("", ""), kvGet("", "b"),
			kvGetBy("a", "z", func(r *pb.RangeRequest) { r.CountOnly = true }),
			kvDel("a", ""), kvDel("\x00", "\x00"), kvTxn(), kvTxn(kvGet("a", "")), kvTxn(kvDel("a", "")),
		}},
		{"put", putRequests()},
		{"range", append(fruit(), rangeRequests()...)},
		{"sort", append(ties(), sortRequests()...)},
		{"filter", append(ties(), filterRequests()...)},
		{"past", append(fruit(), pastRequests()...)},
		{"delete", append(fruit(), deleteRequests()...)},
		{"compare", append(fruit(), compareRequests()...)},
		{"txn", append(fruit(), txnRequests()...)},
		{"nested", append(fruit(), nestedRequests()...)},
		{"overlap", append(fruit(), overlapRequests()...)},
		{"refused", refusedRequests()},
		{"compact", append(fruit(), compactRequests()...)},
	}
}

// fruit makes the revisions kvBase+1 to kvBase+9.
func fruit() []any {
	return []any{
		kvPut("apple", "red"), kvPut("banana", "yellow"), kvPut("cherry", "red"), kvPut("a", "1"),
		kvPut("apple", "green"), kvPut("b\x00\xff", "bytes"), kvPut("\xff\xff", ""), kvPut("banana", "brown"), kvDel("cherry", ""),
	}
}

func putRequests() []any {
	with := func(change func(*pb.PutRequest)) *pb.PutRequest {
		r := kvPut("a", "new")
		change(r)
		return r
	}
	return []any{
		kvPut("a", "1"), kvPut("a", ""), with(func(r *pb.PutRequest) { r.PrevKv = true }), kvGet("a", ""),
		with(func(r *pb.PutRequest) { r.Key, r.PrevKv = []byte("b"), true }),
		kvPut("", "x"),
		with(func(r *pb.PutRequest) { r.IgnoreValue = true }),
		with(func(r *pb.PutRequest) { r.Value, r.IgnoreValue, r.PrevKv = nil, true, true }),
		with(func(r *pb.PutRequest) { r.Key, r.Value, r.IgnoreValue = []byte("none"), nil, true }),
		with(func(r *pb.PutRequest) { r.Key, r.IgnoreLease = []byte("none"), true }),
		with(func(r *pb.PutRequest) { r.Lease = 4711 }),
		with(func(r *pb.PutRequest) { r.Lease = -1 }),
		with(func(r *pb.PutRequest) { r.Lease, r.IgnoreLease = 4711, true }),
		with(func(r *pb.PutRequest) { r.Key, r.Value, r.IgnoreValue, r.Lease = []byte("none"), nil, true, 4711 }),
		kvGrant(77),
		with(func(r *pb.PutRequest) { r.Lease = 77 }), kvGet("a", ""),
		kvGetBy("a", "", func(r *pb.RangeRequest) { r.KeysOnly = true }),
		kvGetBy("a", "b", func(r *pb.RangeRequest) { r.KeysOnly, r.SortTarget = true, pb.RangeRequest_VALUE }),
		kvTxn(kvGetBy("a", "b", func(r *pb.RangeRequest) { r.KeysOnly = true })),
		kvTxn(with(func(r *pb.PutRequest) { r.Key, r.Value, r.IgnoreValue, r.Lease = []byte("none"), nil, true, 4711 })),
		with(func(r *pb.PutRequest) { r.IgnoreLease, r.Value = true, []byte("kept") }), kvGet("a", ""),
		with(func(r *pb.PutRequest) { r.Value, r.IgnoreValue, r.Lease = nil, true, 77 }), kvGet("a", ""),
		kvPut("a", "no lease"), kvGet("a", ""),
		with(func(r *pb.PutRequest) { r.Value, r.IgnoreValue, r.IgnoreLease = nil, true, true }), kvGet("a", ""),
	}
}

func rangeRequests() []any {
	requests := []any{
		kvGet("apple", ""), kvGet("cherry", ""), kvGet("a", "b"), kvGet("a", "c"), kvGet("b", "a"), kvGet("b", "b"), kvGet("apple", "\x00"),
		kvGet("\x00", "\x00"), kvGet("\x00", "b"), kvGet("\xff", "\x00"), kvGet("\xff\xff", ""), kvGet("b\x00\xff", "b\x00\xff\x00"),
		kvGet(strings.Repeat("a", 2000), "\x00"), kvGet("a", strings.Repeat("b", 2000)), kvGet(strings.Repeat("a", 2000), ""),
	}
	for _, limit := range []int64{-1, 1, 3, 4, 5, 6, math.MaxInt64, math.MinInt64} {
		requests = append(requests, kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Limit = limit }))
	}
	for _, key := range [][2]string{{"apple", ""}, {"cherry", ""}, {"a", "c"}, {"c", "a"}} {
		requests = append(requests,
			kvGetBy(key[0], key[1], func(r *pb.RangeRequest) { r.KeysOnly = true }),
			kvGetBy(key[0], key[1], func(r *pb.RangeRequest) { r.CountOnly = true }),
			kvGetBy(key[0], key[1], func(r *pb.RangeRequest) { r.CountOnly, r.Limit = true, 1 }),
			kvGetBy(key[0], key[1], func(r *pb.RangeRequest) { r.KeysOnly, r.Limit, r.Serializable = true, 1, true }),
		)
	}
	return requests
}

// ties makes twelve keys, with numbers and values that several of them share.
func ties() []any {
	key := func(i int) string { return fmt.Sprintf("k%02d", i) }
	var requests []any
	for i := 0; i < 12; i += 3 {
		requests = append(requests, kvTxn(kvPut(key(11-i), "x"), kvPut(key((i*5+1)%12), "y"), kvPut(key((i*5+2)%12+20), "x")))
	}
	return append(requests, kvPut(key(3), "a"), kvPut(key(5), ""), kvPut(key(3), "z"), kvTxn(kvPut(key(8), "b"), kvPut(key(9), "b")))
}

func sortRequests() (requests []any) {
	for target := pb.RangeRequest_KEY; target <= pb.RangeRequest_VALUE; target++ {
		for order := pb.RangeRequest_NONE; order <= pb.RangeRequest_DESCEND; order++ {
			for _, limit := range []int64{0, 1, 5, 100} {
				requests = append(requests, kvGetBy("k", "l", func(r *pb.RangeRequest) {
					r.SortTarget, r.SortOrder, r.Limit, r.KeysOnly = target, order, limit, limit == 5
				}))
			}
		}
	}
	return append(requests,
		kvGetBy("k", "l", func(r *pb.RangeRequest) { r.SortTarget = 5 }),
		kvGetBy("k", "l", func(r *pb.RangeRequest) { r.SortTarget = -1 }),
		kvGetBy("k", "l", func(r *pb.RangeRequest) { r.SortOrder = 3 }),
		kvGetBy("k", "l", func(r *pb.RangeRequest) { r.SortOrder = -1 }),
		kvGetBy("k03", "", func(r *pb.RangeRequest) { r.SortOrder, r.SortTarget, r.Limit = 2, 4, 1 }),
		kvGetBy("k", "l", func(r *pb.RangeRequest) { r.SortOrder, r.CountOnly = 2, true }),
		kvTxn(kvGetBy("k", "l", func(r *pb.RangeRequest) { r.SortTarget, r.SortOrder = pb.RangeRequest_VALUE, pb.RangeRequest_DESCEND })),
	)
}

func filterRequests() (requests []any) {
	for _, n := range []int64{kvBase, kvBase + 2, kvBase + 3, kvBase + 7, kvBase + 100, 1, -1} {
		requests = append(requests,
			kvGetBy("k", "l", func(r *pb.RangeRequest) { r.MinModRevision, r.KeysOnly = n, true }),
			kvGetBy("k", "l", func(r *pb.RangeRequest) { r.MaxModRevision, r.Limit = n, 2 }),
			kvGetBy("k", "l", func(r *pb.RangeRequest) { r.MinCreateRevision, r.Limit = n, 3 }),
			kvGetBy("k", "l", func(r *pb.RangeRequest) { r.MaxCreateRevision, r.Limit, r.SortOrder = n, 1, pb.RangeRequest_DESCEND }),
			kvGetBy("k", "l", func(r *pb.RangeRequest) { r.MaxCreateRevision, r.CountOnly = n, true }),
			kvGetBy("k03", "", func(r *pb.RangeRequest) { r.MinModRevision = n }),
		)
	}
	return requests
}

func pastRequests() (requests []any) {
	for n := int64(-1); n <= 11; n++ {
		requests = append(requests,
			kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision = kvBase + n }),
			kvGetBy("a", "c", func(r *pb.RangeRequest) { r.Revision, r.Limit = kvBase+n, 1 }),
			kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision, r.CountOnly = kvBase+n, true }),
			kvGetBy("apple", "", func(r *pb.RangeRequest) { r.Revision = kvBase + n }),
			kvTxn(kvGetBy("cherry", "", func(r *pb.RangeRequest) { r.Revision = kvBase + n })),
		)
	}
	at := func(n int64) *pb.RangeRequest {
		return kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision, r.KeysOnly = n, true })
	}
	return append(requests,
		at(math.MaxInt64), at(math.MinInt64),
		kvTxn(kvPut("a", "2"), at(kvBase+9), at(kvBase+3), kvGet("a", "")),
		kvTxn(kvPut("a", "3"), at(kvBase+11)),
		kvTxnIf(kvIfs(kvExists("none")), []any{at(kvBase + 100)}, []any{at(kvBase + 2), kvDel("banana", ""), at(kvBase + 10), at(0)}),
	)
}

func deleteRequests() []any {
	return []any{
		kvDel("", ""), kvDel("none", ""), kvDel("b", "a"), kvDel("a", ""), kvDel("a", ""), kvPut("a", "again"), kvGet("a", ""),
		&pb.DeleteRangeRequest{Key: []byte("apple")}, kvDel("a", "c"), kvGet("\x00", "\x00"), kvDel("\x00", "\x00"), kvGet("\x00", "\x00"),
	}
}

func compareRequests() (requests []any) {
	compare := func(key, end string, target pb.Compare_CompareTarget, n int64, value string) *pb.Compare {
		c := &pb.Compare{Key: []byte(key), Target: target}
		if end != "" {
			c.RangeEnd = []byte(end)
		}
		switch target {
		case pb.Compare_VERSION:
			c.TargetUnion = &pb.Compare_Version{Version: n}
		case pb.Compare_CREATE:
			c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: n}
		case pb.Compare_MOD:
			c.TargetUnion = &pb.Compare_ModRevision{ModRevision: n}
		case pb.Compare_VALUE:
			c.TargetUnion = &pb.Compare_Value{Value: []byte(value)}
		case pb.Compare_LEASE:
			c.TargetUnion = &pb.Compare_Lease{Lease: n}
		}
		return c
	}
	for _, key := range [][2]string{{"apple", ""}, {"none", ""}, {"a", "c"}, {"c", "a"}, {"n", "\x00"}, {"x", "y"}} {
		for target := pb.Compare_VERSION; target <= pb.Compare_LEASE+1; target++ {
			for result := pb.Compare_EQUAL; result <= pb.Compare_NOT_EQUAL+1; result++ {
				for _, n := range []int64{0, 2, kvBase + 5} {
					c := compare(key[0], key[1], target, n, map[int64]string{0: "", 2: "green", kvBase + 5: "red"}[n])
					c.Result = result
					requests = append(requests, kvTxnIf(kvIfs(c), nil, nil))
				}
			}
		}
	}
	mixed := compare("apple", "", pb.Compare_VALUE, 0, "green")
	mixed.TargetUnion = &pb.Compare_Version{Version: 2}
	lacking := &pb.Compare{Key: []byte("apple"), Target: pb.Compare_MOD, Result: pb.Compare_GREATER}
	return append(requests,
		kvTxnIf(kvIfs(mixed), nil, nil), kvTxnIf(kvIfs(lacking), nil, nil),
		kvTxnIf(kvIfs(kvExists("apple"), kvExists("none")), []any{kvGet("a", "")}, []any{kvGet("apple", "")}),
		kvTxnIf(kvIfs(kvExists("apple"), kvExists("a")), []any{kvGet("a", "")}, []any{kvGet("apple", "")}),
		kvTxnIf(kvIfs(kvExists("")), nil, nil),
	)
}

func txnRequests() []any {
	all := func() *pb.RangeRequest {
		return kvGetBy("\x00", "\x00", func(r *pb.RangeRequest) { r.KeysOnly = true })
	}
	prev := kvPut("a", "prev")
	prev.PrevKv = true
	ignore := &pb.PutRequest{Key: []byte("banana"), IgnoreValue: true}
	missing := &pb.PutRequest{Key: []byte("none"), IgnoreValue: true}
	leased := kvPut("leased", "x")
	leased.Lease = 78
	unleased := kvPut("leased", "x")
	unleased.Lease = 4712
	return []any{
		kvTxn(all(), kvPut("c", "1"), all(), kvDel("b", "c"), all(), kvGet("c", "")),
		kvTxn(kvDel("none", ""), all(), kvDel("c", ""), kvDel("c", ""), all()),
		kvTxn(kvDel("none", ""), kvGet("none", "")),
		kvTxn(prev, ignore), kvTxn(prev), kvTxn(missing), kvTxn(kvPut("other", ""), missing), kvGet("other", ""),
		kvTxn(kvPut("other", ""), unleased), kvGet("other", ""), kvGrant(78), kvTxn(leased, kvGet("leased", "")), kvTxn(unleased),
		kvTxnIf(kvIfs(kvExists("none")), []any{unleased}, []any{kvPut("d", "no")}),
		kvTxnIf(kvIfs(kvExists("a")), []any{kvGet("a", ""), kvGet("none", "")}, []any{kvPut("d", "no")}),
		kvTxn(kvPut("d", "x"), kvGetBy("a", "\x00", func(r *pb.RangeRequest) {
			r.Limit, r.SortOrder, r.SortTarget = 2, pb.RangeRequest_DESCEND, pb.RangeRequest_MOD
		})),
		kvTxn(kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.CountOnly = true }), kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Limit = 2 })),
		kvTxn(kvGetBy("a", "", func(r *pb.RangeRequest) { r.Revision = -1 })),
	}
}

func nestedRequests() []any {
	return []any{
		kvTxn(kvTxn()), kvTxn(kvTxn(kvTxn(kvGet("a", "")))), kvTxn(kvTxn(kvPut("x", "1")), kvGet("x", "")),
		// A nested transaction sees what was there before the outer one for its comparisons only.
		kvTxn(kvPut("new", "1"), kvTxnIf(kvIfs(kvExists("new")), []any{kvGet("new", "")}, []any{kvPut("else", "1"), kvGet("new", "")}), kvGet("\x00", "\x00")),
		kvTxn(kvDel("new", ""), kvTxnIf(kvIfs(kvExists("new")), []any{kvGet("new", "")}, []any{kvGet("a", "")})),
		kvTxnIf(kvIfs(kvExists("a")),
			[]any{
				kvTxnIf(kvIfs(kvExists("none")), []any{kvPut("n1", "")}, []any{kvTxn(kvPut("n2", ""), kvPut("n3", "")), kvGet("n", "o")}),
				kvTxnIf(kvIfs(kvExists("apple")), []any{kvDel("apple", "")}, []any{kvPut("n4", "")}),
				kvGet("n", "o"),
			},
			[]any{kvPut("n5", "")}),
		kvTxn(kvTxn(kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision, r.KeysOnly = kvBase+3, true }), kvPut("n6", ""))),
		kvTxn(kvTxn(kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision = kvBase + 300 }), kvPut("n7", ""))),
		kvTxn(kvTxn(&pb.PutRequest{Key: []byte("none"), IgnoreValue: true})),
	}
}

func overlapRequests() []any {
	either := func(yes, no any) *pb.TxnRequest { return kvTxnIf(nil, []any{yes}, []any{no}) }
	return []any{
		kvTxn(kvPut("k", "1"), kvPut("k", "2")), kvTxn(kvPut("k", "1"), kvPut("l", "2")),
		kvTxn(kvPut("k", "1"), kvDel("k", "")), kvTxn(kvDel("k", ""), kvPut("k", "1")),
		kvTxn(kvPut("k", "1"), kvDel("j", "l")), kvTxn(kvDel("j", "k"), kvPut("k", "1")), kvTxn(kvDel("k", "k\x00"), kvPut("k", "1")),
		kvTxn(kvDel("j", "\x00"), kvPut("k", "1"), kvGet("k", "")), kvTxn(kvPut("m", "1"), kvDel("j", "\x00"), kvGet("j", "\x00")),
		kvTxn(kvDel("l", "j"), kvPut("k", "1")), kvTxn(kvDel("a", "j"), kvDel("i", "z"), kvPut("z", "")), kvTxn(kvDel("a", "j"), kvDel("i", "z"), kvPut("y", "")),
		kvTxn(kvPut("k", "1"), kvTxn(kvPut("k", "2"))), kvTxn(kvTxn(kvPut("k", "2")), kvPut("k", "1")),
		kvTxn(either(kvPut("k", "1"), kvPut("k", "2")), kvGet("k", "")), kvTxn(either(kvPut("k", "1"), kvPut("k", "2")), kvPut("k", "3")),
		kvTxn(kvTxn(kvPut("k", "1")), kvTxn(kvPut("k", "2"))), kvTxn(kvTxn(kvPut("k", "1")), kvTxn(kvDel("k", "")), kvGet("k", "")),
		kvTxn(kvTxn(kvDel("k", "")), kvTxn(kvPut("k", "1"))), kvTxn(kvDel("k", ""), kvTxn(kvPut("k", "1"))), kvTxn(kvTxn(kvPut("k", "1")), kvDel("k", "")),
		kvTxn(either(kvDel("k", ""), kvPut("k", "2"))), kvTxn(either(kvDel("k", ""), kvPut("l", "2")), kvPut("k", "")),
		kvTxn(either(kvPut("k", "1"), kvDel("k", "")), kvTxn(kvPut("l", "2"))), kvTxn(either(kvDel("a", "m"), kvDel("l", "z")), kvTxn(kvPut("y", "2"))),
		kvTxn(kvTxn(kvTxn(kvPut("k", "1"))), kvTxn(kvTxn(kvPut("k", "1")))), kvTxn(kvDel("k", ""), kvDel("j", "l")),
		kvTxnIf(nil, []any{kvPut("k", "1")}, []any{kvPut("k", "1"), kvPut("k", "2")}),
	}
}

func refusedRequests() []any {
	many := func(n int, request func(i int) any) (out []any) {
		for i := range n {
			out = append(out, request(i))
		}
		return out
	}
	key := func(i int) any { return kvPut(fmt.Sprint("k", i), "") }
	read := func(i int) any { return kvGet(fmt.Sprint("k", i), "") }
	deep := func(n int) *pb.TxnRequest {
		r := kvTxn()
		for range n {
			r = kvTxn(r)
		}
		return r
	}
	compares := make([]*pb.Compare, 129)
	for i := range compares {
		compares[i] = kvExists("k")
	}
	ignore := kvPut("k", "v")
	ignore.IgnoreValue = true
	sorted := kvGet("k", "")
	sorted.SortOrder = 9
	return []any{
		kvTxn(nil), kvTxn(kvGet("a", ""), nil), kvTxnIf(nil, nil, []any{nil}), kvTxn(kvTxn(nil)),
		kvTxn(kvPut("", "")), kvTxn(kvGet("", "")), kvTxn(kvDel("", "")), kvTxn(ignore), kvTxn(sorted), kvTxnIf(nil, nil, []any{kvPut("", "")}),
		kvTxn(many(128, key)...), kvTxn(many(129, key)...), kvTxnIf(nil, nil, many(129, read)), kvTxnIf(compares[:128], nil, nil), kvTxnIf(compares, nil, nil),
		kvTxn(kvTxn(many(127, read)...)), kvTxn(kvTxn(many(128, read)...)), kvTxnIf(compares[:100], []any{kvTxn(many(28, read)...)}, nil),
		kvTxnIf(compares[:100], []any{kvTxn(many(29, read)...)}, nil), deep(3), deep(128), deep(129), kvTxn(deep(2), kvPut("", "")),
	}
}

func compactRequests() []any {
	compact := func(n int64) *pb.CompactionRequest { return &pb.CompactionRequest{Revision: n} }
	at := func(n int64) *pb.RangeRequest {
		return kvGetBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision = n })
	}
	return []any{
		compact(kvBase + 10), compact(math.MaxInt64), at(kvBase + 4), compact(kvBase + 4), compact(kvBase + 4), compact(kvBase + 3), compact(0), compact(-1),
		at(kvBase + 3), at(kvBase + 4), at(kvBase + 5), at(-1), at(-7), kvTxn(at(kvBase + 3)), kvTxn(at(kvBase+4), kvPut("x", "")), kvTxn(at(-1)), kvTxn(at(-1), kvPut("x", "")),
		kvTxnIf(kvIfs(kvExists("none")), []any{at(kvBase + 3)}, nil),
		kvGetBy("a", "b", func(r *pb.RangeRequest) { r.Revision, r.CountOnly = kvBase+3, true }),
		&pb.CompactionRequest{Revision: kvBase + 9, Physical: true}, at(kvBase + 9), at(kvBase + 8), kvGet("a", "\x00"),
		kvPut("y", ""), compact(kvBase + 11), at(kvBase + 11), kvGet("a", "\x00"), kvPut("z", ""), at(kvBase + 11),
	}
}
