package history

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// place is the group, resource, namespace and name in a key.
type place struct {
	stored    schema.GroupResource
	namespace string
	name      string
}

// placeOf returns false for a key that is not of an API object.
func placeOf(key string) (p place, ok bool) {
	prefix := object.ResourceOf(key)
	if prefix == "" {
		return p, false
	}
	p.stored.Group, p.stored.Resource = object.SplitPrefix(prefix)
	namespace, name, namespaced := strings.Cut(key[len(prefix):], "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	p.namespace, p.name = namespace, name
	return p, p.stored.Group != object.InternalGroup
}

// kinds has the Kinds that serve each resource of the log. If there are several groups, the resource's own is
// first.
type kinds map[schema.GroupResource][]*kind.Kind

func kindsOf(set *kind.Set) kinds {
	all := kinds{}
	for _, k := range set.Kinds {
		stored := schema.GroupResource{Group: k.Stored.Group, Resource: k.Stored.Resource}
		all[stored] = append(all[stored], k)
		if last := len(all[stored]) - 1; k.GroupResource() == stored {
			all[stored][0], all[stored][last] = k, all[stored][0]
		}
	}
	return all
}

// describe makes a version without data. Rows up to brought were copied from another database.
func (k kinds) describe(r *changelog.HistoryRow, p place, brought int64) v1.Version {
	at := time.UnixMilli(r.At)
	v := v1.Version{
		TypeMeta: typeMeta("Version"),
		ObjectMeta: metav1.ObjectMeta{
			Name: decimal(r.Revision), Namespace: p.namespace,
			ResourceVersion: decimal(r.Revision), CreationTimestamp: metav1.NewTime(at),
		},
		Description: v1.Description{
			Revision: r.Revision, Time: metav1.NewMicroTime(at), Action: v1.Changed,
			User: r.Origin.User, Impersonator: r.Origin.Impersonator, Verb: r.Origin.Verb, Subresource: r.Origin.Subresource,
			Manager: r.Origin.Manager, AuditID: r.Origin.AuditID,
			Object: v1.ObjectReference{
				Resource: p.stored.String(), Namespace: p.namespace, Name: p.name, CreateRevision: r.CreateRevision,
			},
		},
	}
	if served := k[p.stored]; len(served) > 0 {
		v.Object.Kind = served[0].Kind
	}
	switch {
	case r.Deleted:
		v.Action = v1.Deleted
	case r.Revision <= brought:
		v.Action = v1.Copied
	case r.CreateRevision == r.Revision:
		v.Action = v1.Created
	}
	return v
}

// selectable is a version whose fields a selector can compare.
type selectable v1.Version

// Get returns one of the fields in compared.
func (v *selectable) Get(field string) string {
	switch field {
	case v1.FieldResource:
		return v.Object.Resource
	case v1.FieldKind:
		return v.Object.Kind
	case v1.FieldName:
		return v.Object.Name
	case v1.FieldNamespace:
		return v.Object.Namespace
	case v1.FieldAction:
		return string(v.Action)
	case v1.FieldUser:
		return v.User
	case v1.FieldImpersonator:
		return v.Impersonator
	case v1.FieldVerb:
		return v.Verb
	case v1.FieldSubresource:
		return v.Subresource
	case v1.FieldManager:
		return v.Manager
	case v1.FieldAuditID:
		return v.AuditID
	case "metadata.name":
		return v.Name
	case "metadata.namespace":
		return v.Namespace
	}
	return ""
}
