package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiadmission "k8s.io/apiserver/pkg/admission"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// delete deletes one object. An object with finalizers or a grace period gets a
// deletionTimestamp first, and is deleted when they are gone.
func (q *request) delete() error {
	options, err := q.deleteOptions()
	if err != nil {
		return err
	}
	if isUnsafe(options) {
		return q.deleteUnsafe(options)
	}
	ctx := q.rulesContext()
	if err := q.beforeDelete(ctx, q.name, options); err != nil {
		return err
	}
	gone, err := q.remove(ctx, q.name, options)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if orphan := orphanDependents(options); !gone.deleted && orphan != nil && !*orphan {
		code = http.StatusAccepted
	}
	if gone.entry != nil {
		return q.respondEntry(code, gone.entry)
	}
	out := response.Output{MediaType: q.out.MediaType, Pretty: q.out.Pretty}
	q.auditAnswer(gone.status)
	response.WriteObject(q.w, q.r, code, out, gone.status)
	return nil
}

// beforeDelete asks the Kind about a deletion of one object or, without a name, of many.
func (t *target) beforeDelete(ctx context.Context, name string, options *metav1.DeleteOptions) error {
	if t.kind.Hooks.CheckDelete == nil {
		return nil
	}
	return t.kind.Hooks.CheckDelete(ctx, name, options)
}

// removal is the outcome of one deletion.
type removal struct {
	deleted bool
	entry   *sqlstore.Entry // the object to answer with; nil: status
	status  *metav1.Status
}

// remove deletes the request's object, or marks it for deletion. name is the object's name for
// admission, and in the error if there is no object.
func (q *request) remove(ctx context.Context, name string, options *metav1.DeleteOptions) (gone removal, err error) {
	err = q.api.retry(ctx, q.key(), func(current *sqlstore.Entry) (err error) {
		if current == nil {
			return apierrors.NewNotFound(q.groupResource(), name)
		}
		d := deletion{q: q, name: name, options: options.DeepCopy(), current: current}
		gone, err = d.run(ctx)
		return err
	})
	return gone, err
}

// deletion is one attempt to delete an object.
type deletion struct {
	q       *request
	name    string                // for admission
	options *metav1.DeleteOptions // the attempt's own, because upstream's rules write defaults into them
	current *sqlstore.Entry
	obj     runtime.Object // of current
	m       metav1.Object  // its metadata
}

func (d *deletion) run(ctx context.Context) (removal, error) {
	var err error
	q := d.q
	if err := q.unreadable(d.current); err != nil {
		return removal{}, err
	}
	if d.obj, err = q.load(q.ctx, d.current); err != nil {
		return removal{}, err
	}
	if d.m, err = meta.Accessor(d.obj); err != nil {
		return removal{}, err
	}
	if q.kind.Hooks.MarkTerminating != nil {
		if done, gone, err := d.begin(ctx); done || err != nil {
			return gone, err
		}
	}
	old := d.copyForAdmission()
	graceful, pending, err := apirest.BeforeDelete(q.kind.Delete, ctx, d.obj, d.options)
	if err != nil {
		return removal{}, err
	}
	if pending {
		return d.outcome(d.current, false), nil
	}
	if err := d.admit(ctx, old, d.name); err != nil {
		return removal{}, err
	}
	if finalizers, changed := gcFinalizers(ctx, q.kind.Delete, d.m, d.options); changed {
		d.m.SetFinalizers(finalizers)
	}
	held := len(d.m.GetFinalizers()) > 0
	if !graceful && !held {
		return d.finish(ctx, d.current)
	}
	if !graceful {
		markDeleting(d.m, time.Now())
	}
	return d.mark(ctx)
}

// mark stores an object that is marked for deletion, and deletes it if nothing holds it any
// longer.
func (d *deletion) mark(ctx context.Context) (removal, error) {
	marked, err := d.store(ctx)
	if err != nil {
		return removal{}, err
	}
	waits := len(d.m.GetFinalizers()) > 0 || *d.options.GracePeriodSeconds > 0
	if waits || dryRun(d.options.DryRun) {
		return removal{entry: marked, deleted: !waits}, nil
	}
	gone, err := d.finish(ctx, marked)
	if alreadyGone(err) { // a controller that saw the mark was faster
		return d.outcome(marked, true), nil
	}
	return gone, err
}

// store stores the object that the deletion has marked.
func (d *deletion) store(ctx context.Context) (*sqlstore.Entry, error) {
	value, err := d.q.encode(d.q.ctx, d.obj)
	if err != nil {
		return nil, err
	}
	return d.q.api.overwrite(ctx, d.current, value, 0, dryRun(d.options.DryRun))
}

// finish deletes the object from the store. current is its present entry.
func (d *deletion) finish(ctx context.Context, current *sqlstore.Entry) (removal, error) {
	entry, err := d.q.api.commit(ctx, object.Tombstone(current), dryRun(d.options.DryRun))
	if err != nil {
		return removal{}, err
	}
	d.q.afterDelete(d.obj, d.options.DryRun)
	return d.outcome(entry, true), nil
}

// copyForAdmission copies the object before the rules of deletion mark it. It is nil if admission
// does not ask for it.
func (d *deletion) copyForAdmission() runtime.Object {
	if !(admitter{d.q}).handles(apiadmission.Delete) {
		return nil
	}
	return d.obj.DeepCopyObject()
}

// admit asks admission about the deletion. Preconditions are checked before admission, so that
// webhooks run at most once. Admission is not asked again about an object that is being deleted.
func (d *deletion) admit(ctx context.Context, old runtime.Object, name string) error {
	ask := admitter{d.q}
	if !ask.handles(apiadmission.Delete) {
		return nil
	}
	a := ask.attributes(apiadmission.Delete, nil, old, d.options, name, dryRun(d.options.DryRun))
	if err := ask.mutate(ctx, a); err != nil {
		return err
	}
	return ask.validate(ctx, a)
}

// begin is the first phase of a deletion for Kinds whose objects are held by more than
// metadata.finalizers, as namespaces are. done says that the request ends with this phase.
func (d *deletion) begin(ctx context.Context) (done bool, gone removal, err error) {
	q := d.q
	if err := q.checkPreconditions(d.m, d.options.Preconditions); err != nil {
		return true, gone, err
	}
	if d.m.GetDeletionTimestamp() != nil {
		return q.kind.Hooks.MarkTerminating(d.obj), removal{entry: d.current}, nil
	}
	if d.options.Preconditions == nil {
		d.options.Preconditions = &metav1.Preconditions{}
	}
	if d.options.Preconditions.UID == nil { // as upstream, before it asks admission
		d.options.Preconditions.UID = new(types.UID)
		*d.options.Preconditions.UID = d.m.GetUID()
	}
	if err := d.admit(ctx, d.copyForAdmission(), d.m.GetName()); err != nil {
		return true, gone, err
	}
	q.kind.Hooks.MarkTerminating(d.obj)
	options := d.options
	if orphan := orphanDependents(options); orphan != nil && !*orphan {
		foreground := metav1.DeletePropagationForeground // for all other Kinds it is background
		options = &metav1.DeleteOptions{PropagationPolicy: &foreground, DryRun: options.DryRun}
	}
	now := metav1.Now()
	d.m.SetDeletionTimestamp(&now)
	if finalizers, changed := gcFinalizers(ctx, q.kind.Delete, d.m, options); changed {
		d.m.SetFinalizers(finalizers)
	}
	entry, err := d.store(ctx)
	return true, removal{entry: entry}, err
}

// outcome returns what upstream's finalizeDelete does: the object for some Kinds, else a Status. The UID in the Status
// tells the client this object from a later object of the same name.
func (d *deletion) outcome(e *sqlstore.Entry, deleted bool) removal {
	if d.q.kind.ReturnsDeleted(d.q.version) {
		return removal{deleted: deleted, entry: e}
	}
	return removal{deleted: deleted, status: &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name:  d.m.GetName(),
			Group: d.q.kind.Group,
			Kind:  d.q.kind.Resource, // upstream puts the resource here
			UID:   d.m.GetUID(),
		},
	}}
}

// checkPreconditions compares the preconditions of a deletion with the object.
func (t *target) checkPreconditions(m metav1.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	failed := "Precondition failed: "
	if t.kind.Resource == "customresourcedefinitions" { // upstream begins with a small letter there
		failed = "precondition failed: "
	}
	if p.UID != nil && *p.UID != m.GetUID() {
		return apierrors.NewConflict(t.groupResource(), m.GetName(), errors.New(failed+differs("UID", string(*p.UID), string(m.GetUID()))))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return apierrors.NewConflict(t.groupResource(), m.GetName(), errors.New(failed+differs("ResourceVersion", *p.ResourceVersion, m.GetResourceVersion())))
	}
	return nil
}

func differs(what, want, have string) string {
	return what + " in precondition: " + want + ", " + what + " in object meta: " + have
}

// markDeleting gives an object without graceful deletion its deletionTimestamp. The owners of its
// finalizers begin their work when they see it.
func markDeleting(m metav1.Object, now time.Time) {
	if m.GetDeletionTimestamp() == nil && m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	if t := m.GetDeletionTimestamp(); t == nil || t.After(now) {
		stamp := metav1.NewTime(now)
		m.SetDeletionTimestamp(&stamp)
	}
	zero := int64(0)
	m.SetDeletionGracePeriodSeconds(&zero)
}
