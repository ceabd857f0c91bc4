package rest

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The hooks of a Kind are called where upstream's registry.Store calls its own, with two
// differences. The finish function is told of a success after the commit, not before, so that a
// write that loses a race gives back what it has reserved. It is not called at all if the outcome
// of the commit is not known: what was reserved stays reserved, rather than getting two owners.

// authorizeContents asks the Kind whether the caller may write an object with these contents. old
// is nil for a new object.
func (t *target) authorizeContents(ctx context.Context, obj, old runtime.Object) error {
	if t.kind.Hooks.Authorize == nil {
		return nil
	}
	if err := t.kind.Hooks.Authorize(ctx, obj, old); err != nil {
		return response.FromRegistry(err)
	}
	return nil
}

// beginCreate lets the Kind reserve what a new object needs, as a Service needs addresses.
func (t *target) beginCreate(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (registry.FinishFunc, error) {
	if t.kind.Hooks.ReserveNew == nil {
		return finishNothing, nil
	}
	return t.kind.Hooks.ReserveNew(ctx, obj, options)
}

// beginUpdate lets the Kind reserve what a changed object needs. A change of a subresource needs
// nothing.
func (t *target) beginUpdate(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (registry.FinishFunc, error) {
	if t.kind.Hooks.ReserveChanged == nil || t.sub != nil {
		return finishNothing, nil
	}
	return t.kind.Hooks.ReserveChanged(ctx, obj, old, options)
}

func finishNothing(context.Context, bool) {}

// finishCommitted tells finish of the outcome of a commit, if that is known.
func finishCommitted(ctx context.Context, finish registry.FinishFunc, err error) {
	if !errors.Is(err, changelog.ErrUnknown) {
		finish(ctx, err == nil)
	}
}

// afterDelete lets the Kind release what a deleted object had. Only the request whose commit has
// deleted the object calls it.
func (t *target) afterDelete(obj runtime.Object, dryRun []string) {
	if t.kind.Hooks.Release != nil && len(dryRun) == 0 {
		t.kind.Hooks.Release(obj, &metav1.DeleteOptions{TypeMeta: optionsType("DeleteOptions")})
	}
}
