package postgres

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBound(t *testing.T) {
	for _, test := range []struct{ s, want string }{
		{"/a", "/a"},
		{"/ü日", "/ü日"},
		{"/a\x00", "/a\x01"},
		{"/a\x00b", "/a\x01"},
		{"/a\xff", "/b"},
		{"/\xc3", "/\u00c0"},
		{"/\u00bf\xbf", "/\u00bf\u0080"},
		{"/\ud7ff\xff", "/\ue000"},
		{"a\U0010ffff\xff", "b"},
	} {
		if got := bound(test.s); got != test.want {
			t.Errorf("bound(%q) = %q, want %q", test.s, got, test.want)
		}
	}
}

// TestBoundDivides compares with random texts around.
func TestBoundDivides(t *testing.T) {
	bytes := []byte{0, 1, 'a', 0x7f, 0x80, 0xbf, 0xc2, 0xc3, 0xed, 0x9f, 0xa0, 0xee, 0xf4, 0x8f, 0x90, 0xff}
	texts := []string{"\x01", "a", "\x7f", "\u0080", "ü", "\u07ff", "\ud7ff", "\ue000", "\uffff", "\U0010ffff"}
	for range 200_000 {
		var s []byte
		for range rand.IntN(6) {
			s = append(s, bytes[rand.IntN(len(bytes))])
		}
		var key string
		for range rand.IntN(5) {
			key += texts[rand.IntN(len(texts))]
		}
		b := bound(string(s))
		if !utf8.ValidString(b) || strings.Contains(b, "\x00") {
			t.Fatalf("bound(%q) = %q is no text", s, b)
		}
		if (key < string(s)) != (key < b) {
			t.Fatalf("bound(%q) = %q, but %q is not on the same side of both", s, b, key)
		}
	}
}
