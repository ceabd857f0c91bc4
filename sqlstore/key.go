package sqlstore

import (
	"fmt"
	"strings"
)

// MaxKeyBytes bounds a key in every dialect: MySQL's column has so many bytes, and
// Postgres takes at most 2704 for a row of a B-tree index, SQLite any number.
const MaxKeyBytes = 1024

// RangeOf returns the half-open range [from, to) of all keys that begin with prefix.
func RangeOf(prefix string) (from, to string) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix, prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return prefix, strings.Repeat("\xff", len(prefix)+1)
}

func (s *Store) checkKey(key string) error {
	if len(key) > MaxKeyBytes {
		return fmt.Errorf("%w: it has %d bytes, and at most %d are possible", ErrKey, len(key), MaxKeyBytes)
	}
	return s.o.Format.CheckKey(key)
}
