package postgres

import "strings"

// Raw keys are any bytes; Postgres' text holds neither NUL nor bytes that are not UTF-8. So a
// log of raw keys has them in another form, whose order as bytes is that of the keys:
//
//	0x00         "\x01\x01"
//	0x01         "\x01\x02"
//	0x02 - 0x7f  as it is
//	0x80 - 0xff  U+0080 to U+00FF, which are two bytes
//
// A key of MaxKeyBytes has at most twice as many bytes then, which an index still takes.

// encodeKey returns the text for a raw key.
func encodeKey(key string) string {
	extra := 0
	for i := range len(key) {
		if c := key[i]; c < 2 || c >= 0x80 {
			extra++
		}
	}
	if extra == 0 {
		return key
	}
	var b strings.Builder
	b.Grow(len(key) + extra)
	for i := range len(key) {
		switch c := key[i]; {
		case c < 2:
			b.WriteByte(1)
			b.WriteByte(c + 1)
		case c < 0x80:
			b.WriteByte(c)
		default:
			b.WriteByte(0xc0 | c>>6)
			b.WriteByte(0x80 | c&0x3f)
		}
	}
	return b.String()
}

// decodeKey returns the raw key of a text that encodeKey has made.
func decodeKey(text string) string {
	plain := true
	for i := range len(text) {
		if c := text[i]; c < 2 || c >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case i+1 == len(text) || c != 1 && c < 0xc0:
			b.WriteByte(c)
			continue
		case c == 1:
			b.WriteByte(text[i+1] - 1)
		default:
			b.WriteByte(c<<6 | text[i+1]&0x3f)
		}
		i++
	}
	return b.String()
}
