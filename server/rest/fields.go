package rest

import (
	"bytes"
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"

	"github.com/plinth-io/plinth/server/kind"
)

// Every write says in metadata.managedFields which fields its author now manages.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management

// fields is the field manager of the request's version and subresource; nil if nothing is
// tracked.
func (q *request) fields() *kind.FieldManager {
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
	return f.Track(live, obj, q.manager(fieldManager))
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

// keepTimes takes the times of old's managed fields for obj if they are all that differs,
// so that a write that changes nothing is one. What it does is upstream's
// IgnoreManagedFieldsTimestampsTransformer, which compares the fields twice and by
// reflection.
func keepTimes(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
	if _, ok := obj.(runtime.Unstructured); ok {
		return fieldmanager.IgnoreManagedFieldsTimestampsTransformer(ctx, obj, old)
	}
	to, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	from, err := meta.Accessor(old)
	if err != nil {
		return nil, err
	}
	entries, before := to.GetManagedFields(), from.GetManagedFields()
	if !sameButTimes(entries, before) {
		return obj, nil
	}
	to.SetManagedFields(nil)
	from.SetManagedFields(nil)
	if equality.Semantic.DeepEqual(obj, old) {
		for i := range entries {
			entries[i].Time = before[i].Time
		}
	}
	to.SetManagedFields(entries)
	from.SetManagedFields(before)
	return obj, nil
}

// sameButTimes tells whether there are times that differ, and nothing else does.
func sameButTimes(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	differ := false
	for i := range a {
		x, y := a[i], b[i]
		differ = differ || !x.Time.Equal(y.Time)
		if !sameSet(x.FieldsV1, y.FieldsV1) {
			return false
		}
		x.Time, x.FieldsV1, y.Time, y.FieldsV1 = nil, nil, nil, nil
		if x != y {
			return false
		}
	}
	return differ
}

func sameSet(a, b *metav1.FieldsV1) bool {
	return a == b || a != nil && b != nil && bytes.Equal(a.Raw, b.Raw)
}
