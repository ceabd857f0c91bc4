package rest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// selection decides which entries a list, watch or deletecollection is about.
type selection struct {
	kind   *kind.Kind
	labels labels.Selector // nil: everything
	fields fields.Selector // nil: everything; labels already in the hub's names
	one    bool            // the selection is one object at most:
	name   string          // the one of this name
}

// newSelection checks the selectors of a request. name is from the path, if it has one.
func (q *request) newSelection(l labels.Selector, f fields.Selector) (selection, error) {
	s := selection{kind: q.kind}
	if l != nil && !l.Empty() {
		s.labels = l
	}
	if f == nil || f.Empty() {
		s.one, s.name = q.name != "", q.name
		return s, nil
	}
	f, err := f.Transform(func(label, value string) (string, string, error) {
		return q.kind.FieldLabel(q.version, label, value)
	})
	if err != nil {
		return s, errors.NewBadRequest(err.Error())
	}
	s.name, s.one = f.RequiresExactMatch("metadata.name")
	if q.name != "" && s.name != q.name {
		return s, errors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	if !onlyName(f) {
		s.fields = f
	}
	return s, nil
}

// onlyName tells whether f asks for nothing but an exact metadata.name.
func onlyName(f fields.Selector) bool {
	r := f.Requirements()
	return len(r) == 1 && r[0].Field == "metadata.name" && r[0].Operator == "="
}

// everything tells whether nothing is filtered out (upstream: SelectionPredicate.Empty).
func (s *selection) everything() bool {
	return s.labels == nil && s.fields == nil && !s.one
}

func (s *selection) matches(e *sqlstore.Entry) (bool, error) {
	if e == nil {
		return false, nil
	}
	if s.one {
		if _, name := s.kind.SplitKey(e.Key); name != s.name {
			return false, nil
		}
	}
	if s.labels != nil {
		set, err := labelsOf(e)
		if err != nil || !s.labels.Matches(set) {
			return false, err
		}
	}
	if s.fields != nil {
		set, err := fieldsOf(s.kind, e)
		if err != nil || !s.fields.Matches(set) {
			return false, err
		}
	}
	return true, nil
}

type labelsKey struct{}

// labelsOf reads an entry's labels, once.
func labelsOf(e *sqlstore.Entry) (labels.Set, error) {
	v := e.Memo(labelsKey{}, func() any {
		var meta struct {
			Labels map[string]string `json:"labels"`
		}
		if err := json.Unmarshal(metadataJSON(e.JSON), &meta); err != nil {
			return fmt.Errorf("labels of %s: %w", e.Key, err)
		}
		return labels.Set(meta.Labels)
	})
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v.(labels.Set), nil
}

type fieldsKey struct{ group string }

// fieldsOf reads an entry's selectable fields, once.
func fieldsOf(k *kind.Kind, e *sqlstore.Entry) (fields.Set, error) {
	v := e.Memo(fieldsKey{k.Group}, func() any {
		obj, err := k.Codec.Load(e.JSON)
		if err != nil {
			return fmt.Errorf("fields of %s: %w", e.Key, err)
		}
		_, set, err := k.Attrs(obj)
		if err != nil {
			return fmt.Errorf("fields of %s: %w", e.Key, err)
		}
		return set
	})
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v.(fields.Set), nil
}
