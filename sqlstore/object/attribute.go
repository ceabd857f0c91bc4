package object

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/plinth-io/plinth/sqlstore"
)

// Attributes of objects (sqlstore.Predicate). A name is the kind of the attribute and its parts, separated
// by a byte that no key and no path has.
const (
	partEnd = "\x00"

	labelAttribute    = "label" + partEnd
	hasLabelAttribute = "haslabel" + partEnd
	fieldAttribute    = "field" + partEnd
	nameAttribute     = "name"
)

// Label is the attribute whose term is the value of a label. Objects without the label lack it.
func Label(key string) string { return labelAttribute + key }

// HasLabel is the attribute that objects with a label have, with the term "".
func HasLabel(key string) string { return hasLabelAttribute + key }

// Name is the attribute whose term is an object's name, which its key has.
func Name() string { return nameAttribute }

// Field is the attribute whose term is the string, the whole number or the boolean at a path of a stored
// object. What the term of an object without the field is, is unclear.
func Field(path ...string) string {
	return fieldAttribute + partEnd + strings.Join(path, partEnd)
}

// FieldOr is Field, where objects without the field have the term absent.
func FieldOr(absent string, path ...string) string {
	return fieldAttribute + "=" + absent + partEnd + strings.Join(path, partEnd)
}

// TermOf returns what reads an attribute.
func TermOf(attribute string) sqlstore.TermOf {
	switch {
	case attribute == nameAttribute:
		return nameOf
	case strings.HasPrefix(attribute, labelAttribute):
		return labelOf(strings.TrimPrefix(attribute, labelAttribute))
	case strings.HasPrefix(attribute, hasLabelAttribute):
		return hasLabelOf(strings.TrimPrefix(attribute, hasLabelAttribute))
	}
	parts := strings.Split(strings.TrimPrefix(attribute, fieldAttribute), partEnd)
	absent, given := strings.CutPrefix(parts[0], "=")
	missing := sqlstore.Term{Is: sqlstore.Unclear}
	if given {
		missing = sqlstore.Term{Is: sqlstore.Present, Text: []byte(absent)}
	}
	return fieldOf(missing, parts[1:])
}

func nameOf(key string, _ []byte) sqlstore.Term {
	return sqlstore.Term{Is: sqlstore.Present, Text: []byte(key[strings.LastIndexByte(key, '/')+1:])}
}

func labelOf(key string) sqlstore.TermOf {
	path := []string{"metadata", "labels", key}
	return func(_ string, value []byte) sqlstore.Term {
		switch raw, found := find(value, path); {
		case found == absent:
			return sqlstore.Term{}
		case found == there && raw[0] == '"':
			return scalar(raw)
		}
		return sqlstore.Term{Is: sqlstore.Unclear}
	}
}

func hasLabelOf(key string) sqlstore.TermOf {
	label := labelOf(key)
	return func(key string, value []byte) sqlstore.Term {
		t := label(key, value)
		t.Text = nil
		return t
	}
}

func fieldOf(missing sqlstore.Term, path []string) sqlstore.TermOf {
	return func(_ string, value []byte) sqlstore.Term {
		switch raw, found := find(value, path); found {
		case there:
			return scalar(raw)
		case absent:
			return missing
		}
		return sqlstore.Term{Is: sqlstore.Unclear}
	}
}

// scalar is the term of a JSON value.
func scalar(raw []byte) sqlstore.Term {
	switch {
	case raw[0] == '"':
		if text, ok := unquote(raw); ok {
			return sqlstore.Term{Is: sqlstore.Present, Text: text}
		}
	case isWhole(raw), string(raw) == "true", string(raw) == "false":
		return sqlstore.Term{Is: sqlstore.Present, Text: raw}
	}
	return sqlstore.Term{Is: sqlstore.Unclear}
}

// isWhole says that a JSON number is a whole one that all programs write in the same way.
func isWhole(raw []byte) bool {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(raw) > 1 {
		return false
	}
	return len(bytes.TrimLeft(digits, "0123456789")) == 0
}

// unquote returns what a JSON string stands for.
func unquote(raw []byte) (text []byte, ok bool) {
	text = raw[1 : len(raw)-1]
	for _, c := range text {
		if c == '\\' || c >= 0x80 {
			var s string
			err := json.Unmarshal(raw, &s)
			return []byte(s), err == nil
		}
	}
	return text, true
}
