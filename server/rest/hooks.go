package rest

import (
	"context"
	stderrors "errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/plinth-io/plinth/sqlstore"
)

// Where the hooks of a Kind are called is upstream's (registry.Store), but for two things.
// finish is told of a success when the change is committed, not before, so that what a lost
// race would have given back is not given away. And it is not called if the outcome of the
// commit is not known: what was taken for it stays taken, rather than having two owners.

// beginCreate lets the Kind take what a new object needs from elsewhere.
func (q *request) beginCreate(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (registry.FinishFunc, error) {
	if q.kind.BeginCreate == nil {
		return finishNothing, nil
	}
	return q.kind.BeginCreate(ctx, obj, options)
}

// beginUpdate is the same for a change of the object itself. A subresource takes nothing.
func (q *request) beginUpdate(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (registry.FinishFunc, error) {
	if q.kind.BeginUpdate == nil || q.sub != nil {
		return finishNothing, nil
	}
	return q.kind.BeginUpdate(ctx, obj, old, options)
}

func finishNothing(context.Context, bool) {}

// finishCommitted tells finish of the outcome of a commit.
func finishCommitted(ctx context.Context, finish registry.FinishFunc, err error) {
	if !stderrors.Is(err, sqlstore.ErrUnknown) {
		finish(ctx, err == nil)
	}
}

// afterDelete lets the Kind give back what an object had that is gone now. It is called by
// the one that ended it, and by nobody else who found it gone.
func (q *request) afterDelete(obj runtime.Object, dryRun []string) {
	if q.kind.AfterDelete != nil && len(dryRun) == 0 {
		q.kind.AfterDelete(obj, &metav1.DeleteOptions{TypeMeta: optionsType("DeleteOptions")})
	}
}
