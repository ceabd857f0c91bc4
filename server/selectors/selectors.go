// Package selectors bounds the selectors of lists, watches and deletions of collections, and compares the fields
// of many objects with one.
//
// It knows upstream's selectors, and nothing of resources.
package selectors

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// MostTerms is how many terms a selector has at most: requirements, and of a label's set each value.
// Each object and each event is compared with them.
const MostTerms = 1000

// Check returns an error for the client if the text of a selector, which is that of the parameter name, has
// more than MostTerms. It is called before the text is parsed, and reads it once.
func Check(name, text string) error {
	if len(text) < MostTerms { // a term has a byte at least, and a comma
		return nil
	}
	if n := Terms(text); n > MostTerms {
		return fmt.Errorf("%s has %d terms; at most %d are possible: select fewer, and make several requests", name, n, MostTerms)
	}
	return nil
}

// CheckQuery is Check for the selectors in a query.
func CheckQuery(query url.Values) error {
	for _, name := range parameters {
		for _, text := range query[name] {
			if err := Check(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// parameters are those that have a selector.
var parameters = [...]string{"fieldSelector", "labelSelector", "shardSelector"}

// Bounded returns a request for those who parse selectors before they can refuse one: r, or if one of its selectors has
// too many terms a copy without them. Only the copy's URL is another.
func Bounded(r *http.Request) *http.Request {
	if len(r.URL.RawQuery) < MostTerms {
		return r
	}
	query := r.URL.Query()
	if CheckQuery(query) == nil {
		return r
	}
	for _, name := range parameters {
		query.Del(name)
	}
	out, to := *r, *r.URL
	to.RawQuery = query.Encode()
	out.URL = &to
	return &out
}

// Terms counts the terms of a selector: what stands between its commas. In a field selector a comma
// after a backslash belongs to a value; label selectors have no backslashes.
func Terms(text string) int {
	n := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ',':
			n++
		}
	}
	return n
}

// Fields is a field selector for many comparisons: each field of it is read once for an object, and looked up,
// however many terms name it. Its zero value selects everything.
type Fields struct {
	fields []compared // in the order in which the selector first names them
	none   bool       // a field cannot have two values
}

// compared is what a selector asks of one field.
type compared struct {
	name  string
	exact bool
	value string   // if exact
	not   []string // in order
}

// Compile returns the requirements of a field selector, of which skip leaves out some; nil: none.
func Compile(requirements fields.Requirements, skip func(field string) bool) Fields {
	var f Fields
	for _, r := range requirements {
		if skip != nil && skip(r.Field) {
			continue
		}
		c := f.of(r.Field)
		switch {
		case r.Operator == selection.NotEquals:
			c.not = append(c.not, r.Value)
		case c.exact && c.value != r.Value:
			f.none = true
		default:
			c.exact, c.value = true, r.Value
		}
	}
	for i := range f.fields {
		c := &f.fields[i]
		slices.Sort(c.not)
		c.not = slices.Compact(c.not)
		f.none = f.none || c.exact && c.excludes(c.value)
	}
	return f
}

// of returns what is asked of a field. Kinds have few that a selector may name.
func (f *Fields) of(field string) *compared {
	for i := range f.fields {
		if f.fields[i].name == field {
			return &f.fields[i]
		}
	}
	f.fields = append(f.fields, compared{name: field})
	return &f.fields[len(f.fields)-1]
}

func (c *compared) excludes(value string) bool {
	_, found := slices.BinarySearch(c.not, value)
	return found
}

// Never says that nothing can be selected.
func (f *Fields) Never() bool { return f.none }

// Empty says that everything is selected.
func (f *Fields) Empty() bool { return len(f.fields) == 0 }

// Exact returns the value that a field must have, if the selector says so.
func (f *Fields) Exact(field string) (value string, ok bool) {
	for i := range f.fields {
		if c := &f.fields[i]; c.name == field {
			return c.value, c.exact
		}
	}
	return "", false
}

// Without returns the selector without what it asks of a field's exact value, which is met by where the
// caller looks.
func (f *Fields) Without(field string) Fields {
	out := Fields{none: f.none}
	for _, c := range f.fields {
		if c.name == field {
			c.exact, c.value = false, ""
		}
		if c.exact || len(c.not) > 0 {
			out.fields = append(out.fields, c)
		}
	}
	return out
}

// Matches says whether an object is selected that has these values, empty for a field that it has not.
func (f *Fields) Matches(object interface{ Get(field string) string }) bool {
	if f.none {
		return false
	}
	for i := range f.fields {
		c := &f.fields[i]
		value := object.Get(c.name)
		if c.exact && value != c.value || len(c.not) > 0 && c.excludes(value) {
			return false
		}
	}
	return true
}

// Names returns the fields that are compared, in the order in which the selector names them.
func (f *Fields) Names() []string {
	names := make([]string, len(f.fields))
	for i := range f.fields {
		names[i] = f.fields[i].name
	}
	return names
}
