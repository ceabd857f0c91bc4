package rest

import (
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

// Every write records in metadata.managedFields which fields its author now manages.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management

// fieldManager is the field manager of the request's version and subresource; nil if managed
// fields are not tracked.
func (q *request) fieldManager() *kind.FieldManager {
	if q.api.o.Untracked {
		return nil
	}
	if c := q.kind.Conversion(); c != nil {
		return c.Fields(q.ctx, q.info.Subresource)
	}
	if q.sub != nil {
		return q.sub.Fields[q.version]
	}
	return q.kind.Version(q.version).Fields
}

// track records in obj which fields the request changes, under the name of its author. live is the
// object before the write, nil if there was none. manager is the option fieldManager.
func (q *request) track(live, obj runtime.Object, manager string) runtime.Object {
	f := q.fieldManager()
	if f == nil {
		return obj
	}
	if live == nil {
		live = q.kind.Codec.New()
	}
	return f.Track(live, obj, q.manager(manager))
}

// manager returns the field manager of the request: the option fieldManager, else the user agent
// up to its first slash.
func (c *call) manager(option string) string {
	if option != "" {
		return option
	}
	agent, _, _ := strings.Cut(c.r.UserAgent(), "/")
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

// sameFields tells whether two lists share their memory. It does not compare entries.
func sameFields(a, b []metav1.ManagedFieldsEntry) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// keepTimes copies the times of old's managed fields to obj if nothing else differs, so that a
// write that changes nothing stores nothing. It does what upstream's
// IgnoreManagedFieldsTimestampsTransformer does, without comparing the fields twice and by
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

// sameButTimes tells whether times differ and nothing else does.
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
	return a == b || a != nil && b != nil && a.Equal(*b)
}
