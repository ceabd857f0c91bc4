package history

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// DeleteCollection implements rest.CollectionDeleter: it removes the old versions of one object for
// good. Who may delete the object and the collection of versions may do so; see rights.mayForget.
func (r *versions) DeleteCollection(ctx context.Context, _ apirest.ValidateObjectFunc, o *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
	q, err := r.parse(ctx, list)
	if err != nil {
		return nil, err
	}
	if !q.one || q.none || q.after != 0 || q.through != changelog.Forever || q.at != 0 || !onlyObject(list.FieldSelector) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the versions of one object can be deleted, all of them; select it with %s, %s and a namespace", v1.FieldResource, v1.FieldName))
	}
	p, ok := placeOf(q.from)
	if !ok {
		return nil, apierrors.NewBadRequest("no object has such a name")
	}
	w := r.walk(ctx, q)
	may, reason, err := w.rights.mayForget(ctx, p, q.from)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: p.stored.Group, Resource: p.stored.Resource}, p.name, fmt.Errorf("deleting its versions takes the right to delete it: %s", reason))
	}
	status := &metav1.Status{Status: metav1.StatusSuccess}
	if len(o.DryRun) > 0 {
		return status, nil
	}
	removed, err := r.Store.Forget(ctx, q.from)
	if err != nil {
		return nil, err
	}
	status.Message = counted(removed) + " removed"
	return status, nil
}

func counted(versions int64) string {
	if versions == 1 {
		return "1 old version"
	}
	return fmt.Sprintf("%d old versions", versions)
}

// onlyObject reports whether a selector selects all versions of one object.
func onlyObject(s fields.Selector) bool {
	for _, r := range s.Requirements() {
		switch r.Field {
		case v1.FieldResource, v1.FieldKind, v1.FieldName, v1.FieldNamespace, "metadata.namespace":
		default:
			return false
		}
	}
	return true
}
