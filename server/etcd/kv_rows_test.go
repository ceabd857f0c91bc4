package etcd

import (
	"fmt"
	"math"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func put(key, value string) *pb.PutRequest {
	return &pb.PutRequest{Key: []byte(key), Value: []byte(value)}
}

func get(key, end string) *pb.RangeRequest {
	r := &pb.RangeRequest{Key: []byte(key)}
	if end != "" {
		r.RangeEnd = []byte(end)
	}
	return r
}

func getBy(key, end string, change func(*pb.RangeRequest)) *pb.RangeRequest {
	r := get(key, end)
	change(r)
	return r
}

func del(key, end string) *pb.DeleteRangeRequest {
	r := &pb.DeleteRangeRequest{Key: []byte(key), PrevKv: true}
	if end != "" {
		r.RangeEnd = []byte(end)
	}
	return r
}

// do is one operation of a transaction; nil says nothing.
func do(r any) *pb.RequestOp {
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

func ops(requests ...any) (out []*pb.RequestOp) {
	for _, r := range requests {
		out = append(out, do(r))
	}
	return out
}

func txn(requests ...any) *pb.TxnRequest { return &pb.TxnRequest{Success: ops(requests...)} }

func txnIf(compares []*pb.Compare, yes, no []any) *pb.TxnRequest {
	return &pb.TxnRequest{Compare: compares, Success: ops(yes...), Failure: ops(no...)}
}

func ifs(c ...*pb.Compare) []*pb.Compare { return c }

func exists(key string) *pb.Compare {
	return &pb.Compare{Key: []byte(key), Target: pb.Compare_VERSION, Result: pb.Compare_GREATER,
		TargetUnion: &pb.Compare_Version{Version: 0}}
}

// kvScripts are the scripts of TestKVAnswersAsEtcd, new each time because playing changes them.
func kvScripts() []script {
	return []script{
		{"empty", []any{
			get("a", ""), get("a", "\x00"), get("\x00", "\x00"), get("", ""), get("", "b"),
			getBy("a", "z", func(r *pb.RangeRequest) { r.CountOnly = true }),
			del("a", ""), del("\x00", "\x00"), txn(), txn(get("a", "")), txn(del("a", "")),
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

// fruit makes the revisions base+1 to base+9.
func fruit() []any {
	return []any{
		put("apple", "red"), put("banana", "yellow"), put("cherry", "red"), put("a", "1"),
		put("apple", "green"), put("b\x00\xff", "bytes"), put("\xff\xff", ""), put("banana", "brown"), del("cherry", ""),
	}
}

func putRequests() []any {
	with := func(change func(*pb.PutRequest)) *pb.PutRequest {
		r := put("a", "new")
		change(r)
		return r
	}
	return []any{
		put("a", "1"), put("a", ""), with(func(r *pb.PutRequest) { r.PrevKv = true }), get("a", ""),
		with(func(r *pb.PutRequest) { r.Key, r.PrevKv = []byte("b"), true }),
		put("", "x"),
		with(func(r *pb.PutRequest) { r.IgnoreValue = true }),
		with(func(r *pb.PutRequest) { r.Value, r.IgnoreValue, r.PrevKv = nil, true, true }),
		with(func(r *pb.PutRequest) { r.Key, r.Value, r.IgnoreValue = []byte("none"), nil, true }),
		with(func(r *pb.PutRequest) { r.Key, r.IgnoreLease = []byte("none"), true }),
		with(func(r *pb.PutRequest) { r.Lease = 4711 }),
		with(func(r *pb.PutRequest) { r.Lease = -1 }),
		with(func(r *pb.PutRequest) { r.Lease, r.IgnoreLease = 4711, true }),
		with(func(r *pb.PutRequest) { r.Key, r.Value, r.IgnoreValue, r.Lease = []byte("none"), nil, true, 4711 }),
		grant(77),
		with(func(r *pb.PutRequest) { r.Lease = 77 }), get("a", ""),
		with(func(r *pb.PutRequest) { r.IgnoreLease, r.Value = true, []byte("kept") }), get("a", ""),
		with(func(r *pb.PutRequest) { r.Value, r.IgnoreValue, r.Lease = nil, true, 77 }), get("a", ""),
		put("a", "no lease"), get("a", ""),
		with(func(r *pb.PutRequest) { r.Value, r.IgnoreValue, r.IgnoreLease = nil, true, true }), get("a", ""),
	}
}

func rangeRequests() []any {
	requests := []any{
		get("apple", ""), get("cherry", ""), get("a", "b"), get("a", "c"), get("b", "a"), get("b", "b"), get("apple", "\x00"),
		get("\x00", "\x00"), get("\x00", "b"), get("\xff", "\x00"), get("\xff\xff", ""), get("b\x00\xff", "b\x00\xff\x00"),
		get(strings.Repeat("a", 2000), "\x00"), get("a", strings.Repeat("b", 2000)), get(strings.Repeat("a", 2000), ""),
	}
	for _, limit := range []int64{-1, 1, 3, 4, 5, 6, math.MaxInt64, math.MinInt64} {
		requests = append(requests, getBy("a", "\x00", func(r *pb.RangeRequest) { r.Limit = limit }))
	}
	for _, key := range [][2]string{{"apple", ""}, {"cherry", ""}, {"a", "c"}, {"c", "a"}} {
		requests = append(requests,
			getBy(key[0], key[1], func(r *pb.RangeRequest) { r.KeysOnly = true }),
			getBy(key[0], key[1], func(r *pb.RangeRequest) { r.CountOnly = true }),
			getBy(key[0], key[1], func(r *pb.RangeRequest) { r.CountOnly, r.Limit = true, 1 }),
			getBy(key[0], key[1], func(r *pb.RangeRequest) { r.KeysOnly, r.Limit, r.Serializable = true, 1, true }),
		)
	}
	return requests
}

// ties makes twelve keys, with numbers and values that several of them share.
func ties() []any {
	key := func(i int) string { return fmt.Sprintf("k%02d", i) }
	var requests []any
	for i := 0; i < 12; i += 3 {
		requests = append(requests, txn(put(key(11-i), "x"), put(key((i*5+1)%12), "y"), put(key((i*5+2)%12+20), "x")))
	}
	return append(requests, put(key(3), "a"), put(key(5), ""), put(key(3), "z"), txn(put(key(8), "b"), put(key(9), "b")))
}

func sortRequests() (requests []any) {
	for target := pb.RangeRequest_KEY; target <= pb.RangeRequest_VALUE; target++ {
		for order := pb.RangeRequest_NONE; order <= pb.RangeRequest_DESCEND; order++ {
			for _, limit := range []int64{0, 1, 5, 100} {
				requests = append(requests, getBy("k", "l", func(r *pb.RangeRequest) {
					r.SortTarget, r.SortOrder, r.Limit, r.KeysOnly = target, order, limit, limit == 5
				}))
			}
		}
	}
	return append(requests,
		getBy("k", "l", func(r *pb.RangeRequest) { r.SortTarget = 5 }),
		getBy("k", "l", func(r *pb.RangeRequest) { r.SortTarget = -1 }),
		getBy("k", "l", func(r *pb.RangeRequest) { r.SortOrder = 3 }),
		getBy("k", "l", func(r *pb.RangeRequest) { r.SortOrder = -1 }),
		getBy("k03", "", func(r *pb.RangeRequest) { r.SortOrder, r.SortTarget, r.Limit = 2, 4, 1 }),
		getBy("k", "l", func(r *pb.RangeRequest) { r.SortOrder, r.CountOnly = 2, true }),
		txn(getBy("k", "l", func(r *pb.RangeRequest) { r.SortTarget, r.SortOrder = pb.RangeRequest_VALUE, pb.RangeRequest_DESCEND })),
	)
}

func filterRequests() (requests []any) {
	for _, n := range []int64{base, base + 2, base + 3, base + 7, base + 100, 1, -1} {
		requests = append(requests,
			getBy("k", "l", func(r *pb.RangeRequest) { r.MinModRevision, r.KeysOnly = n, true }),
			getBy("k", "l", func(r *pb.RangeRequest) { r.MaxModRevision, r.Limit = n, 2 }),
			getBy("k", "l", func(r *pb.RangeRequest) { r.MinCreateRevision, r.Limit = n, 3 }),
			getBy("k", "l", func(r *pb.RangeRequest) { r.MaxCreateRevision, r.Limit, r.SortOrder = n, 1, pb.RangeRequest_DESCEND }),
			getBy("k", "l", func(r *pb.RangeRequest) { r.MaxCreateRevision, r.CountOnly = n, true }),
			getBy("k03", "", func(r *pb.RangeRequest) { r.MinModRevision = n }),
		)
	}
	return requests
}

func pastRequests() (requests []any) {
	for n := int64(-1); n <= 11; n++ {
		requests = append(requests,
			getBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision = base + n }),
			getBy("a", "c", func(r *pb.RangeRequest) { r.Revision, r.Limit = base+n, 1 }),
			getBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision, r.CountOnly = base+n, true }),
			getBy("apple", "", func(r *pb.RangeRequest) { r.Revision = base + n }),
			txn(getBy("cherry", "", func(r *pb.RangeRequest) { r.Revision = base + n })),
		)
	}
	at := func(n int64) *pb.RangeRequest {
		return getBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision, r.KeysOnly = n, true })
	}
	return append(requests,
		at(math.MaxInt64), at(math.MinInt64),
		txn(put("a", "2"), at(base+9), at(base+3), get("a", "")),
		txn(put("a", "3"), at(base+11)),
		txnIf(ifs(exists("none")), []any{at(base + 100)}, []any{at(base + 2), del("banana", ""), at(base + 10), at(0)}),
	)
}

func deleteRequests() []any {
	return []any{
		del("", ""), del("none", ""), del("b", "a"), del("a", ""), del("a", ""), put("a", "again"), get("a", ""),
		&pb.DeleteRangeRequest{Key: []byte("apple")}, del("a", "c"), get("\x00", "\x00"), del("\x00", "\x00"), get("\x00", "\x00"),
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
				for _, n := range []int64{0, 2, base + 5} {
					c := compare(key[0], key[1], target, n, map[int64]string{0: "", 2: "green", base + 5: "red"}[n])
					c.Result = result
					requests = append(requests, txnIf(ifs(c), nil, nil))
				}
			}
		}
	}
	mixed := compare("apple", "", pb.Compare_VALUE, 0, "green")
	mixed.TargetUnion = &pb.Compare_Version{Version: 2}
	lacking := &pb.Compare{Key: []byte("apple"), Target: pb.Compare_MOD, Result: pb.Compare_GREATER}
	return append(requests,
		txnIf(ifs(mixed), nil, nil), txnIf(ifs(lacking), nil, nil),
		txnIf(ifs(exists("apple"), exists("none")), []any{get("a", "")}, []any{get("apple", "")}),
		txnIf(ifs(exists("apple"), exists("a")), []any{get("a", "")}, []any{get("apple", "")}),
		txnIf(ifs(exists("")), nil, nil),
	)
}

func txnRequests() []any {
	all := func() *pb.RangeRequest {
		return getBy("\x00", "\x00", func(r *pb.RangeRequest) { r.KeysOnly = true })
	}
	prev := put("a", "prev")
	prev.PrevKv = true
	ignore := &pb.PutRequest{Key: []byte("banana"), IgnoreValue: true}
	missing := &pb.PutRequest{Key: []byte("none"), IgnoreValue: true}
	leased := put("leased", "x")
	leased.Lease = 78
	unleased := put("leased", "x")
	unleased.Lease = 4712
	return []any{
		txn(all(), put("c", "1"), all(), del("b", "c"), all(), get("c", "")),
		txn(del("none", ""), all(), del("c", ""), del("c", ""), all()),
		txn(del("none", ""), get("none", "")),
		txn(prev, ignore), txn(prev), txn(missing), txn(put("other", ""), missing), get("other", ""),
		txn(put("other", ""), unleased), get("other", ""), grant(78), txn(leased, get("leased", "")), txn(unleased),
		txnIf(ifs(exists("none")), []any{unleased}, []any{put("d", "no")}),
		txnIf(ifs(exists("a")), []any{get("a", ""), get("none", "")}, []any{put("d", "no")}),
		txn(put("d", "x"), getBy("a", "\x00", func(r *pb.RangeRequest) {
			r.Limit, r.SortOrder, r.SortTarget = 2, pb.RangeRequest_DESCEND, pb.RangeRequest_MOD
		})),
		txn(getBy("a", "\x00", func(r *pb.RangeRequest) { r.CountOnly = true }), getBy("a", "\x00", func(r *pb.RangeRequest) { r.Limit = 2 })),
		txn(getBy("a", "", func(r *pb.RangeRequest) { r.Revision = -1 })),
	}
}

func nestedRequests() []any {
	return []any{
		txn(txn()), txn(txn(txn(get("a", "")))), txn(txn(put("x", "1")), get("x", "")),
		// A nested transaction sees what was there before the outer one for its comparisons only.
		txn(put("new", "1"), txnIf(ifs(exists("new")), []any{get("new", "")}, []any{put("else", "1"), get("new", "")}), get("\x00", "\x00")),
		txn(del("new", ""), txnIf(ifs(exists("new")), []any{get("new", "")}, []any{get("a", "")})),
		txnIf(ifs(exists("a")),
			[]any{
				txnIf(ifs(exists("none")), []any{put("n1", "")}, []any{txn(put("n2", ""), put("n3", "")), get("n", "o")}),
				txnIf(ifs(exists("apple")), []any{del("apple", "")}, []any{put("n4", "")}),
				get("n", "o"),
			},
			[]any{put("n5", "")}),
		txn(txn(getBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision, r.KeysOnly = base+3, true }), put("n6", ""))),
		txn(txn(getBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision = base + 300 }), put("n7", ""))),
		txn(txn(&pb.PutRequest{Key: []byte("none"), IgnoreValue: true})),
	}
}

func overlapRequests() []any {
	either := func(yes, no any) *pb.TxnRequest { return txnIf(nil, []any{yes}, []any{no}) }
	return []any{
		txn(put("k", "1"), put("k", "2")), txn(put("k", "1"), put("l", "2")),
		txn(put("k", "1"), del("k", "")), txn(del("k", ""), put("k", "1")),
		txn(put("k", "1"), del("j", "l")), txn(del("j", "k"), put("k", "1")), txn(del("k", "k\x00"), put("k", "1")),
		txn(del("j", "\x00"), put("k", "1"), get("k", "")), txn(put("m", "1"), del("j", "\x00"), get("j", "\x00")),
		txn(del("l", "j"), put("k", "1")), txn(del("a", "j"), del("i", "z"), put("z", "")), txn(del("a", "j"), del("i", "z"), put("y", "")),
		txn(put("k", "1"), txn(put("k", "2"))), txn(txn(put("k", "2")), put("k", "1")),
		txn(either(put("k", "1"), put("k", "2")), get("k", "")), txn(either(put("k", "1"), put("k", "2")), put("k", "3")),
		txn(txn(put("k", "1")), txn(put("k", "2"))), txn(txn(put("k", "1")), txn(del("k", "")), get("k", "")),
		txn(txn(del("k", "")), txn(put("k", "1"))), txn(del("k", ""), txn(put("k", "1"))), txn(txn(put("k", "1")), del("k", "")),
		txn(either(del("k", ""), put("k", "2"))), txn(either(del("k", ""), put("l", "2")), put("k", "")),
		txn(either(put("k", "1"), del("k", "")), txn(put("l", "2"))), txn(either(del("a", "m"), del("l", "z")), txn(put("y", "2"))),
		txn(txn(txn(put("k", "1"))), txn(txn(put("k", "1")))), txn(del("k", ""), del("j", "l")),
		txnIf(nil, []any{put("k", "1")}, []any{put("k", "1"), put("k", "2")}),
	}
}

func refusedRequests() []any {
	many := func(n int, request func(i int) any) (out []any) {
		for i := range n {
			out = append(out, request(i))
		}
		return out
	}
	key := func(i int) any { return put(fmt.Sprint("k", i), "") }
	read := func(i int) any { return get(fmt.Sprint("k", i), "") }
	deep := func(n int) *pb.TxnRequest {
		r := txn()
		for range n {
			r = txn(r)
		}
		return r
	}
	compares := make([]*pb.Compare, 129)
	for i := range compares {
		compares[i] = exists("k")
	}
	ignore := put("k", "v")
	ignore.IgnoreValue = true
	sorted := get("k", "")
	sorted.SortOrder = 9
	return []any{
		txn(nil), txn(get("a", ""), nil), txnIf(nil, nil, []any{nil}), txn(txn(nil)),
		txn(put("", "")), txn(get("", "")), txn(del("", "")), txn(ignore), txn(sorted), txnIf(nil, nil, []any{put("", "")}),
		txn(many(128, key)...), txn(many(129, key)...), txnIf(nil, nil, many(129, read)), txnIf(compares[:128], nil, nil), txnIf(compares, nil, nil),
		txn(txn(many(127, read)...)), txn(txn(many(128, read)...)), txnIf(compares[:100], []any{txn(many(28, read)...)}, nil),
		txnIf(compares[:100], []any{txn(many(29, read)...)}, nil), deep(3), deep(128), deep(129), txn(deep(2), put("", "")),
	}
}

func compactRequests() []any {
	compact := func(n int64) *pb.CompactionRequest { return &pb.CompactionRequest{Revision: n} }
	at := func(n int64) *pb.RangeRequest {
		return getBy("a", "\x00", func(r *pb.RangeRequest) { r.Revision = n })
	}
	return []any{
		compact(base + 10), compact(math.MaxInt64), at(base + 4), compact(base + 4), compact(base + 4), compact(base + 3), compact(0), compact(-1),
		at(base + 3), at(base + 4), at(base + 5), at(-1), at(-7), txn(at(base + 3)), txn(at(base+4), put("x", "")), txn(at(-1)), txn(at(-1), put("x", "")),
		txnIf(ifs(exists("none")), []any{at(base + 3)}, nil),
		getBy("a", "b", func(r *pb.RangeRequest) { r.Revision, r.CountOnly = base+3, true }),
		&pb.CompactionRequest{Revision: base + 9, Physical: true}, at(base + 9), at(base + 8), get("a", "\x00"),
		put("y", ""), compact(base + 11), at(base + 11), get("a", "\x00"), put("z", ""), at(base + 11),
	}
}
