package rest

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Every write says in metadata.managedFields which fields its author now manages.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management

// fields is the field manager of the request's version and subresource; nil if nothing is
// tracked.
func (q *request) fields() *managedfields.FieldManager {
	if q.api.o.Untracked {
		return nil
	}
	if c := q.kind.Conversion; c != nil {
		return c.Fields(q.r.Context(), q.info.Subresource)
	}
	if q.sub != nil {
		return q.sub.Fields[q.version]
	}
	return q.kind.Version(q.version).Fields
}

// track records in obj what the request's author changes with it. live is what was there,
// an empty object if nothing was. fieldManager is the option of that name.
func (q *request) track(live, obj runtime.Object, fieldManager string) runtime.Object {
	f := q.fields()
	if f == nil {
		return obj
	}
	if q.sub == nil {
		defer lendFields(live, obj)()
	}
	return f.UpdateNoErrors(live, obj, q.manager(fieldManager))
}

// lendFields takes the managed fields out of live for as long as obj has the same ones,
// or gets them from it because it has none: the field manager goes by obj's then, and
// looking through live for them again would be half of its work.
func lendFields(live, obj runtime.Object) (giveBack func()) {
	from, err1 := meta.Accessor(live)
	to, err2 := meta.Accessor(obj)
	if err1 != nil || err2 != nil {
		return func() {}
	}
	entries := from.GetManagedFields()
	if given := to.GetManagedFields(); given == nil {
		to.SetManagedFields(entries)
	} else if !reflect.DeepEqual(given, entries) {
		return func() {}
	}
	from.SetManagedFields(nil)
	return func() { from.SetManagedFields(entries) }
}

// trackNew is track for an object that a create request makes.
func (q *request) trackNew(obj runtime.Object, fieldManager string) (runtime.Object, error) {
	live, err := q.codec().NewVersioned(q.gvk().GroupVersion())
	if err != nil {
		return nil, err
	}
	return q.track(live, obj, fieldManager), nil
}

// manager is the name of the request's author: the option, else what the user agent
// begins with.
func (q *request) manager(fieldManager string) string {
	if fieldManager != "" {
		return fieldManager
	}
	agent, _, _ := strings.Cut(q.r.UserAgent(), "/")
	var name strings.Builder
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if name.Len()+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		name.WriteRune(r)
	}
	return name.String()
}

// store encodes obj for the log. Managed fields are left out where they would make it too
// large: they are there for the object, not the other way round. Only an apply is about
// them as much as about the object.
func (q *request) store(obj runtime.Object) ([]byte, error) {
	value, err := q.encode(obj)
	if err != nil || q.applies || len(value) <= q.api.store.MaxValueBytes() {
		return value, err
	}
	m, err := meta.Accessor(obj)
	if err != nil || len(m.GetManagedFields()) == 0 {
		return value, err
	}
	m.SetManagedFields(nil)
	return q.encode(obj)
}

// sameFields tells whether two lists are one and the same, without looking inside.
func sameFields(a, b []metav1.ManagedFieldsEntry) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
