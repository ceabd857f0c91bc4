package rest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
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

	prefix string // of all keys that may be selected: the resource's or a namespace's
	key    string // the only one that may be selected, if that is known
}

// newSelection checks the selectors of a request. name is from the path, if it has one.
func (q *request) newSelection(l labels.Selector, f fields.Selector) (selection, error) {
	s := selection{kind: q.kind}
	if err := s.selectFields(q, f); err != nil {
		return s, err
	}
	s.narrow(q)
	if l != nil && !l.Empty() {
		s.labels = l
	}
	return s, nil
}

func (s *selection) selectFields(q *request, f fields.Selector) error {
	if f == nil || f.Empty() {
		s.one, s.name = q.name != "", q.name
		return nil
	}
	f, err := f.Transform(func(label, value string) (string, string, error) {
		return q.kind.FieldLabel(q.version, label, value)
	})
	if err != nil {
		return errors.NewBadRequest(err.Error())
	}
	s.name, s.one = f.RequiresExactMatch("metadata.name")
	if q.name != "" && s.name != q.name {
		return errors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	if !onlyName(f) {
		s.fields = f
	}
	return nil
}

// narrow finds the keys that are worth looking at: those of the namespace in the path, or
// of the one that the field selector asks for.
func (s *selection) narrow(q *request) {
	s.prefix = q.kind.Prefix()
	namespace := q.namespace
	if namespace == "" && s.fields != nil && q.kind.Namespaced {
		namespace, _ = s.fields.RequiresExactMatch("metadata.namespace")
		if len(validation.ValidateNamespaceName(namespace, false)) > 0 {
			namespace = ""
		}
	}
	if namespace != "" {
		s.prefix += namespace + "/"
	}
	if s.one && (namespace != "" || !q.kind.Namespaced) {
		s.key = s.prefix + s.name
	}
}

// watched is the prefix of the keys that a watch must hear of.
func (s *selection) watched() string {
	if s.key != "" {
		return s.key
	}
	return s.prefix
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

// looksInside tells whether entries are selected by more than their key.
func (s *selection) looksInside() bool { return s.labels != nil || s.fields != nil }

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

// fieldsKey names the fields that a group knows, and of a custom resource those of one
// version and schema, see objectKey.
type fieldsKey struct {
	group, version string
	gone           <-chan struct{}
}

// fieldsOf reads an entry's selectable fields, once.
func fieldsOf(k *kind.Kind, e *sqlstore.Entry) (fields.Set, error) {
	key := fieldsKey{group: k.Group}
	if k.Gone != nil {
		key.version, key.gone = k.Versions[0].Name, k.Gone
	}
	v := e.Memo(key, func() any {
		obj, err := loadEntry(k, e)
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
