package changelog

import "strings"

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

// End comes after every key: the end of a range that has none.
var End = strings.Repeat("\xff", MaxKeyBytes+1)

// After returns the lowest key behind key.
func After(key string) string { return key + "\x00" }

// ResourceOf returns the part of an object's key that names its resource, with the trailing slash:
// /registry/<group>/<resource>/. It is empty if key has fewer segments.
func ResourceOf(key string) string {
	n := 0
	for i := 0; i < len(key); i++ {
		if key[i] == '/' {
			if n++; n == 4 {
				return key[:i+1]
			}
		}
	}
	return ""
}

// OneKey returns the key of a range that has room for no other one.
func OneKey(from, to string) (key string, one bool) {
	return from, to == After(from)
}
