package kind

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
)

// Hooks are what a resource does in a write besides its strategies. Each is optional.
// Objects are in hub form.
//
// A create calls Authorize, CompleteNew, ReserveNew and SetAside; an update Authorize,
// CompleteChanged, ReserveChanged and, for an object that is being deleted, DeletionDone; a delete
// CheckDelete and MarkTerminating. Release follows whichever request ended the object.
type Hooks struct {
	// Authorize refuses an object that its author may not write because of what is in it: a
	// role with permissions that the author does not have. It is called after mutating
	// admission and before all other hooks; old is nil for a new object. Upstream does this in a
	// registry around that of the resource.
	Authorize func(ctx context.Context, obj, old runtime.Object) error

	// CompleteNew and CompleteChanged complete an object before the strategies see it, or
	// refuse it. Upstream does this in storage hooks of the resource.
	CompleteNew     func(ctx context.Context, obj runtime.Object) error
	CompleteChanged func(ctx context.Context, obj, old runtime.Object) error

	// ReserveNew and ReserveChanged take what an object needs from elsewhere (a Service's
	// addresses and ports), before the strategies see it. Writes through subresources do
	// not call them. finish is called once with the outcome of the write, unless the outcome
	// is not known. Upstream: registry.Store.BeginCreate and BeginUpdate.
	ReserveNew     func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (finish registry.FinishFunc, err error)
	ReserveChanged func(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (finish registry.FinishFunc, err error)
	// Release gives back what a deleted object had. A dry run does not call it.
	// Upstream: registry.Store.AfterDelete.
	Release func(obj runtime.Object, options *metav1.DeleteOptions)

	// MayWait returns how long an update may wait for others to share its transaction, if the
	// server lets updates wait; nil: not at all.
	MayWait func(obj, old runtime.Object) time.Duration

	// SetAside removes fields from a new object that the server has written itself, so that the strategy does not
	// decode them in vain. restore puts them back.
	SetAside func(obj runtime.Object) (restore func())

	// CheckDelete may refuse a deletion, or warn through the context's recorder. It is called
	// for every deletion, also of objects that do not exist; name is empty for a collection.
	// Upstream does this in the Delete method of the resource's storage.
	CheckDelete func(ctx context.Context, name string, options *metav1.DeleteOptions) error
	// MarkTerminating changes an object that gets its deletionTimestamp, and reports whether
	// more than metadata.finalizers holds it (a namespace's spec.finalizers).
	// Upstream does this in the Delete method of the resource's storage.
	MarkTerminating func(obj runtime.Object) (held bool)
	// DeletionDone reports whether an update of an object with a deletionTimestamp completes
	// its deletion. It is asked when no finalizer and no grace period is left; nil: that is
	// enough. Upstream: registry.Store.ShouldDeleteDuringUpdate.
	DeletionDone func(ctx context.Context, key string, obj, existing runtime.Object) bool
}
