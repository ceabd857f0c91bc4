package etcd

import (
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxDepth bounds how deep transactions nest before they are decoded, which takes stack for each
// level: a request has room for hundreds of thousands. checkTxn has the limit that clients know.
const maxDepth = 10_000

// refuseDeep makes r a transaction that checkTxn refuses if the one in data nests too deep. It
// says whether it does.
func refuseDeep(r *pb.TxnRequest, data []byte) bool {
	if shallow(data, maxDepth) {
		return false
	}
	r.Compare = manyCompares()
	return true
}

// manyCompares are more than any transaction may have. Nobody looks at them, because their number
// alone is an error. They are made for the first client that needs them.
var manyCompares = sync.OnceValue(func() []*pb.Compare { return make([]*pb.Compare, 1<<20) })

// shallow says whether an encoded transaction has at most that many levels. What cannot be
// decoded is not deep.
func shallow(txn []byte, levels int) bool {
	const success, failure = 2, 3
	return eachMessage(txn, func(field protowire.Number, op []byte) bool {
		if field != success && field != failure {
			return true
		}
		const request = 4
		return eachMessage(op, func(field protowire.Number, nested []byte) bool {
			return field != request || levels > 1 && shallow(nested, levels-1)
		})
	})
}

// eachMessage calls f for the fields of an encoded message that have a length, until f returns
// false.
func eachMessage(data []byte, f func(protowire.Number, []byte) bool) bool {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return true
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, kind, data); n < 0 {
				return true
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return true
		}
		if !f(field, value) {
			return false
		}
		data = data[n:]
	}
	return true
}
