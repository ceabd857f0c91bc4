package object

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth is how deep brackets may be nested, as in encoding/json.
const maxDepth = 10000

// badAt returns where b ceases to be one JSON value, -1 if it is one. It decides as encoding/json.Valid does, at
// several times its speed: a start looks at every object.
func badAt(b []byte) int {
	var room [64]byte
	open := room[:0] // what closes the brackets that are open
	i := space(b, 0)
	for {
		// A value begins here.
		switch c := at(b, i); {
		case c == '{' || c == '[':
			if open = append(open, c+2); len(open) > maxDepth { // '}' and ']'
				return i
			}
			i = space(b, i+1)
			if at(b, i) == c+2 {
				break // it is empty: closed below
			}
			if c == '{' {
				if i = memberName(b, i); i < 0 {
					return ^i
				}
			}
			continue
		default:
			if i = scalarEnd(b, i); i < 0 {
				return ^i
			}
		}
		// A value has ended here, or an empty one is about to.
		for {
			i = space(b, i)
			if len(open) == 0 {
				if i == len(b) {
					return -1
				}
				return i
			}
			if at(b, i) != open[len(open)-1] {
				break
			}
			open = open[:len(open)-1]
			i++
		}
		if at(b, i) != ',' {
			return i
		}
		i = space(b, i+1)
		if open[len(open)-1] == '}' {
			if i = memberName(b, i); i < 0 {
				return ^i
			}
		}
	}
}

// at returns the byte at i, 0 beyond the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// memberName returns where the value of the member begins whose name is at i; if there is no name, the
// complement of where it is wrong.
func memberName(b []byte, i int) int {
	if at(b, i) != '"' {
		return ^i
	}
	if i = textEnd(b, i+1); i < 0 {
		return i
	}
	i = space(b, i)
	if at(b, i) != ':' {
		return ^i
	}
	return space(b, i+1)
}

// scalarEnd returns where the string, number or literal at i ends, or the complement of where it is wrong.
func scalarEnd(b []byte, i int) int {
	switch c := at(b, i); {
	case c == '"':
		return textEnd(b, i+1)
	case c == 't':
		return wordEnd(b, i, "true")
	case c == 'f':
		return wordEnd(b, i, "false")
	case c == 'n':
		return wordEnd(b, i, "null")
	case c == '-' || isDigit(c):
		return numberEnd(b, i)
	}
	return ^i
}

func wordEnd(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return ^i
	}
	return i + len(word)
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func numberEnd(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if at(b, i) == '0' {
		i++
	} else if i = digits(b, i); i < 0 {
		return i
	}
	if at(b, i) == '.' {
		if i = digits(b, i+1); i < 0 {
			return i
		}
	}
	if c := at(b, i); c == 'e' || c == 'E' {
		if c := at(b, i+1); c == '+' || c == '-' {
			i++
		}
		i = digits(b, i+1)
	}
	return i
}

// digits returns where one digit or more at i end, or the complement of i.
func digits(b []byte, i int) int {
	from := i
	for isDigit(at(b, i)) {
		i++
	}
	if i == from {
		return ^i
	}
	return i
}

// Bytes eight at a time: one byte of each word says something about one byte of the text.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// textEnd returns where a string ends whose first quote is before i, or the complement of where it is wrong.
func textEnd(b []byte, i int) int {
	for {
		for len(b)-i >= 8 {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^(ones*'"'), w^(ones*'\\')
			odd := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
			if odd != 0 {
				i += bits.TrailingZeros64(odd) / 8
				break
			}
			i += 8
		}
		switch c := at(b, i); {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = escapeEnd(b, i+1); i < 0 {
				return i
			}
		case c < 0x20: // also beyond the end
			return ^i
		default:
			i++
		}
	}
}

// escapeEnd returns where an escape ends whose backslash is before i, or the complement of where it is wrong.
func escapeEnd(b []byte, i int) int {
	switch at(b, i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for n := 1; n <= 4; n++ {
			if c := at(b, i+n) | 0x20; !isDigit(at(b, i+n)) && (c < 'a' || c > 'f') {
				return ^(i + n)
			}
		}
		return i + 5
	}
	return ^i
}
