package rest

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/sharding"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/selectors"
	"github.com/plinth-io/plinth/sqlstore"
)

// selection decides which entries a list, watch or deletecollection is about.
type selection struct {
	kind   *kind.Kind
	labels labels.Selector   // nil: everything
	fields fields.Selector   // nil: everything; labels already in the hub's names
	match  selectors.Fields  // what fields says
	shard  sharding.Selector // nil: everything
	one    bool              // at most the object called name is selected
	name   string

	prefix string // of all keys that may be selected: the resource's or a namespace's
	key    string // the only key that may be selected, if that is known

	where []sqlstore.Predicate       // what selected entries satisfy, as far as their bytes tell
	read  map[string]sqlstore.TermOf // fields of the selector that can be told without decoding an entry
}

// newSelection checks the selectors of a request about t.
func newSelection(t *target, l labels.Selector, f fields.Selector) (selection, error) {
	s := selection{kind: t.kind}
	if err := s.selectFields(t, f); err != nil {
		return s, err
	}
	s.narrow(t)
	if l != nil && !l.Empty() {
		s.labels = l
	}
	s.addPredicates()
	return s, nil
}

func (s *selection) selectFields(t *target, f fields.Selector) error {
	if f == nil || f.Empty() {
		s.one, s.name = t.name != "", t.name
		return nil
	}
	f, err := f.Transform(func(label, value string) (string, string, error) {
		return t.kind.FieldLabel(t.version, label, value)
	})
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	s.name, s.one = f.RequiresExactMatch("metadata.name")
	if t.name != "" && s.name != t.name {
		return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	if !onlyName(f) {
		s.fields, s.match = f, selectors.Compile(f.Requirements(), nil)
	}
	return nil
}

// narrow finds the keys that may be selected: those of the namespace in the path, or of the
// namespace that the field selector asks for.
func (s *selection) narrow(t *target) {
	s.prefix = t.kind.Prefix()
	namespace := t.namespace
	if namespace == "" && s.fields != nil && t.kind.Namespaced {
		namespace, _ = s.fields.RequiresExactMatch("metadata.namespace")
		if len(validation.ValidateNamespaceName(namespace, false)) > 0 {
			namespace = ""
		}
	}
	if namespace != "" {
		s.prefix += namespace + "/"
	}
	if s.one && (namespace != "" || !t.kind.Namespaced) {
		s.key = s.prefix + s.name
	}
}

// watched is the prefix of the keys that a watch follows.
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

// everything tells whether all objects below the prefix are selected (upstream:
// SelectionPredicate.Empty).
func (s *selection) everything() bool {
	return s.labels == nil && s.fields == nil && s.shard == nil && !s.one
}

// looksInside tells whether the selection depends on more than an entry's key.
func (s *selection) looksInside() bool {
	return s.labels != nil || s.fields != nil || s.shard != nil
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
	if s.shard != nil {
		if in, err := s.inShard(e); err != nil || !in {
			return false, err
		}
	}
	if s.labels != nil {
		set, err := response.Labels(e)
		if err != nil || !s.labels.Matches(set) {
			return false, err
		}
	}
	if s.fields != nil {
		read := fieldReader{selection: s, entry: e}
		match := s.match.Matches(&read)
		return match && read.err == nil, read.err
	}
	return true, nil
}

// fieldsKey is the key of an entry's selectable fields among its memos. The fields depend on the group, and for a
// custom resource on the version and the schema, see objectKey in package response.
type fieldsKey struct {
	group, version string
	gone           <-chan struct{}
}

// fieldsOf reads an entry's selectable fields, once.
func fieldsOf(k *kind.Kind, e *sqlstore.Entry) (fields.Set, error) {
	key := fieldsKey{group: k.Group}
	if k.Custom != nil {
		key.version, key.gone = k.Versions[0].Name, k.Gone()
	}
	v := e.Memo(key, func() any {
		obj, err := response.Load(k, e)
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
