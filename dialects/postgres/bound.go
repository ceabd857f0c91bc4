package postgres

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// bound returns the bound of a range as the log's keys are stored.
func (l *database) bound(s string) string {
	if l.kind == changelog.KindEtcd {
		return encodeKey(s)
	}
	return bound(s)
}

// bound returns the least text that Postgres can hold which is not less than s. Keys are
// such text, so it divides them as s does. The bounds of ranges are often no such text:
// "key\x00" stands for "after key", and the end of a range may be half a character.
func bound(s string) string {
	valid := 0
	for valid < len(s) && s[valid] != 0 {
		r, size := utf8.DecodeRuneInString(s[valid:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		valid += size
	}
	if valid == len(s) {
		return s
	}
	if r, ok := runeFrom(s[valid:]); ok {
		return s[:valid] + string(r)
	}
	for p := s[:valid]; p != ""; {
		last, size := utf8.DecodeLastRuneInString(p)
		p = p[:len(p)-size]
		if i := runeIndex(last) + 1; i < runes {
			return p + string(runeAt(i))
		}
	}
	return strings.Repeat(string(rune(utf8.MaxRune)), 1024) // above every key
}

// Characters but NUL are numbered without the gap of the surrogates, in the order that
// their encodings have too.
const (
	surrogates = 0xe000 - 0xd800
	runes      = utf8.MaxRune - surrogates
)

func runeAt(i int) rune {
	if i+1 >= 0xd800 {
		i += surrogates
	}
	return rune(i + 1)
}

func runeIndex(r rune) int {
	if r >= 0xe000 {
		r -= surrogates
	}
	return int(r) - 1
}

// runeFrom returns the first character whose encoding is not less than s.
func runeFrom(s string) (rune, bool) {
	i := sort.Search(runes, func(i int) bool { return string(runeAt(i)) >= s })
	return runeAt(i), i < runes
}
