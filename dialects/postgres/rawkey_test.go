package postgres

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestEncodeKey(t *testing.T) {
	for _, test := range []struct{ key, text string }{
		{"", ""},
		{"/registry/pods/a", "/registry/pods/a"},
		{"\x00", "\x01\x01"},
		{"\x01", "\x01\x02"},
		{"\x02\x7f", "\x02\x7f"},
		{"\x80\xbf\xc0\xff", "\u0080\u00bf\u00c0\u00ff"},
		{"ü\x00", "\u00c3\u00bc\x01\x01"},
	} {
		if got := encodeKey(test.key); got != test.text {
			t.Errorf("encodeKey(%q) = %q, want %q", test.key, got, test.text)
		}
		if got := decodeKey(test.text); got != test.key {
			t.Errorf("decodeKey(%q) = %q, want %q", test.text, got, test.key)
		}
	}
}

// checkKeys checks that two keys can be stored, come back and are in the same order.
func checkKeys(t *testing.T, a, b string) {
	t.Helper()
	for _, key := range []string{a, b} {
		text := encodeKey(key)
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") || len(text) > 2*len(key) {
			t.Fatalf("encodeKey(%q) = %q", key, text)
		}
		if back := decodeKey(text); back != key {
			t.Fatalf("%q came back as %q", key, back)
		}
	}
	if cmp.Compare(a, b) != cmp.Compare(encodeKey(a), encodeKey(b)) {
		t.Fatalf("%q and %q are in another order as %q and %q", a, b, encodeKey(a), encodeKey(b))
	}
}

// TestKeyOrder compares all keys of up to two bytes' neighbours, and random ones.
func TestKeyOrder(t *testing.T) {
	for c := range 256 {
		for d := range 256 {
			checkKeys(t, string([]byte{byte(c)}), string([]byte{byte(d)}))
			checkKeys(t, string([]byte{byte(c), byte(d)}), string([]byte{byte(c)}))
			checkKeys(t, string([]byte{byte(c), 0}), string([]byte{byte(c), byte(d)}))
		}
	}
	edges := []byte{0, 1, 2, 'a', 0x7f, 0x80, 0xbf, 0xc0, 0xfe, 0xff}
	random := func() string {
		key := make([]byte, rand.IntN(6))
		for i := range key {
			key[i] = edges[rand.IntN(len(edges))]
		}
		return string(key)
	}
	for range 200_000 {
		checkKeys(t, random(), random())
	}
	checkKeys(t, changelog.End, strings.Repeat("\xff", changelog.MaxKeyBytes))
}

func FuzzEncodeKey(f *testing.F) {
	f.Add("/registry/a", "/registry/a\x00")
	f.Add("\x00\x01", "\x01")
	f.Add("\xff", "\x7f\xc2")
	f.Fuzz(checkKeys)
}
