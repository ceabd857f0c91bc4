package etcd

import "github.com/plinth-io/plinth/sqlstore/changelog"

// span is the keys of a request: one key, or those with from <= key < to.
type span struct {
	from, to string
	one      bool
}

// spanOf reads a key and a range_end. Without a range_end, the span is one key; "\x00" is the end of a range
// without an end.
func spanOf(key, end []byte) span {
	if len(end) == 0 {
		return span{from: bound(key), one: true}
	}
	if len(end) == 1 && end[0] == 0 {
		return span{from: bound(key), to: changelog.End}
	}
	return span{from: bound(key), to: bound(end)}
}

// bound returns a string that divides the set of possible keys as b does, and is not much longer than these
// keys may be.
func bound(b []byte) string {
	if len(b) > changelog.MaxKeyBytes {
		return string(b[:changelog.MaxKeyBytes]) + "\x00"
	}
	return string(b)
}
