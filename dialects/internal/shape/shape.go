// Package shape compares the schema that a database has with the one that plinth's migrations make.
package shape

import (
	"maps"
	"slices"
	"strings"
)

// Shape is a schema, or a part of it: what each column, index and view is, by its kind and name, such as
// "column log.id".
type Shape map[string]string

// Trigger is what is wrong with a trigger.
const Trigger = "plinth makes none; it can change or refuse what is written"

// Parse reads a Shape written as lines, of which each has two words, a comma, and what the thing is.
func Parse(text string) Shape {
	s := Shape{}
	for line := range strings.Lines(text) {
		if name, is, ok := strings.Cut(strings.TrimSpace(line), ", "); ok {
			s[name] = is
		}
	}
	return s
}

// Compare calls found with all that is missing in s, or is otherwise there. What s has beyond it is no fault: a newer
// plinth may have made it, or somebody who queries the database.
func (s Shape) Compare(want Shape, found func(in, what string)) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch is, ok := s[name]; {
		case !ok:
			found(name, "it is missing")
		case is != want[name]:
			found(name, "it is "+is+", and should be "+want[name])
		}
	}
}
