package object

import "bytes"

// found says what a search in a JSON object has come to.
type found uint8

const (
	odd    found = iota // it is not laid out as a stored value
	absent              // there is no such member
	there
)

// find returns the JSON value at a path of a stored value, of which it reads no more than it has to.
func find(value []byte, path []string) (raw []byte, result found) {
	for _, name := range path {
		at, result := member(value, name)
		if result != there {
			return nil, result
		}
		value = value[at:]
	}
	end := endOfValue(value, 0)
	if end < 0 || end == len(value) { // at least the object that it is in ends after it
		return nil, odd
	}
	return value[:end], there
}

// member returns where the value of a member begins of the JSON object at the beginning of b.
func member(b []byte, name string) (at int, result found) {
	if len(b) < 2 || b[0] != '{' {
		return 0, odd
	}
	if b[1] == '}' {
		return 0, absent
	}
	for i := 0; i < len(b) && (i == 0 || b[i] == ','); {
		from := i + 1
		colon := endOfString(b, from)
		if colon >= len(b) || b[colon] != ':' {
			return 0, odd
		}
		quoted := b[from+1 : colon-1]
		if string(quoted) == name {
			return colon + 1, there
		}
		if bytes.IndexByte(quoted, '\\') >= 0 {
			return 0, odd
		}
		if i = endOfValue(b, colon+1); i < 0 {
			return 0, odd
		}
		if i < len(b) && b[i] == '}' {
			return 0, absent
		}
	}
	return 0, odd
}

// endOfString returns where the string that begins at from ends; len(b) if there is none.
func endOfString(b []byte, from int) int {
	if from >= len(b) || b[from] != '"' {
		return len(b)
	}
	for i := from + 1; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}

// endOfValue returns where the value that begins at from ends, negative if it does not.
func endOfValue(b []byte, from int) int {
	if from >= len(b) {
		return -1
	}
	switch b[from] {
	case '"':
		return endOfString(b, from)
	case '{', '[':
		return endOfBrackets(b, from)
	}
	for i := from; i < len(b); i++ {
		switch c := b[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
		case i > from && (c == ',' || c == '}' || c == ']'):
			return i
		default:
			return -1
		}
	}
	return -1
}

func endOfBrackets(b []byte, from int) int {
	depth := 0
	for i := from; i < len(b); {
		switch b[i] {
		case '"':
			i = endOfString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
