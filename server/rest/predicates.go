package rest

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	operators "k8s.io/apimachinery/pkg/selection"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// addPredicates derives predicates from the selectors, by which the store finds the selected entries. The most
// selective comes first, as far as one can guess: one object, a field, a label. Requirements that exclude values are
// left out, because they select too much. If a webhook converts objects it may change labels and fields, so only the
// name can be used.
func (s *selection) addPredicates() {
	if s.one && s.key == "" {
		s.where = append(s.where, sqlstore.Predicate{Attribute: object.Name(), Terms: []string{s.name}})
	}
	if s.kind.Conversion() != nil {
		return
	}
	if s.fields != nil {
		s.readFields()
	}
	if s.labels != nil {
		s.addLabels()
	}
}

// readFields adds the fields that have attributes.
func (s *selection) readFields() {
	s.read = make(map[string]sqlstore.TermOf)
	for _, field := range s.match.Names() {
		attribute := s.kind.Attributes[field]
		if attribute == "" {
			continue
		}
		s.read[field] = object.TermOf(attribute)
		if value, ok := s.match.Exact(field); ok {
			s.where = append(s.where, sqlstore.Predicate{Attribute: attribute, Terms: []string{value}})
		}
	}
}

// addLabels adds requirements for values of labels first, then requirements for the existence of labels.
func (s *selection) addLabels() {
	requirements, _ := s.labels.Requirements()
	var single, several, there []sqlstore.Predicate
	for _, r := range requirements {
		switch r.Operator() {
		case operators.Equals, operators.DoubleEquals, operators.In:
			p := sqlstore.Predicate{Attribute: object.Label(r.Key()), Terms: r.Values().List()}
			if len(p.Terms) == 1 {
				single = append(single, p)
			} else {
				several = append(several, p)
			}
		case operators.Exists, operators.GreaterThan, operators.LessThan:
			there = append(there, sqlstore.Predicate{Attribute: object.HasLabel(r.Key()), Terms: []string{""}})
		}
	}
	s.where = slices.Concat(s.where, single, several, there)
}

// fieldReader gives a selector the fields of an entry. It decodes the entry only if it must.
type fieldReader struct {
	selection *selection
	entry     *sqlstore.Entry
	decoded   fields.Set
	err       error // the entry could not be decoded
}

// Get returns a field's value.
func (f *fieldReader) Get(field string) string {
	namespace, name := f.selection.kind.SplitKey(f.entry.Key)
	switch field {
	case "metadata.name":
		return name
	case "metadata.namespace":
		return namespace
	}
	if read := f.selection.read[field]; read != nil {
		if term := read(f.entry.Key, f.entry.Value); term.Is == sqlstore.Present {
			return string(term.Text)
		}
	}
	if f.decoded == nil && f.err == nil {
		f.decoded, f.err = fieldsOf(f.selection.kind, f.entry)
	}
	return f.decoded.Get(field)
}
