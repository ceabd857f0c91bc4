package rest

import (
	"context"
	stderrors "errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/sqlstore"
)

// delete removes one object, or begins to: with finalizers or a grace period left, the
// object gets its deletionTimestamp and goes when they are gone.
func (q *request) delete() error {
	options, err := q.deleteOptions()
	if err != nil {
		return err
	}
	ctx := q.rulesContext()
	if err := q.beforeDelete(ctx, q.name, options); err != nil {
		return err
	}
	gone, err := q.remove(ctx, q.key(), q.name, options)
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
	out := output{mediaType: q.out.mediaType, pretty: q.out.pretty}
	q.auditAnswer(gone.status)
	writeObject(q.w, q.r, code, out, gone.status)
	return nil
}

// beforeDelete asks the kind about a deletion of one object or, without a name, of many.
func (q *request) beforeDelete(ctx context.Context, name string, options *metav1.DeleteOptions) error {
	if q.kind.BeforeDelete == nil {
		return nil
	}
	return q.kind.BeforeDelete(ctx, name, options)
}

// removal is the outcome of one deletion.
type removal struct {
	deleted bool
	entry   *sqlstore.Entry // the object to answer with; nil: status
	status  *metav1.Status
}

// remove deletes the object of key, or begins to. name is the one that the request gives.
func (q *request) remove(ctx context.Context, key, name string, options *metav1.DeleteOptions) (gone removal, err error) {
	err = q.settle(ctx, key, func(current *sqlstore.Entry) (err error) {
		gone, err = q.removeOnce(ctx, current, name, options.DeepCopy())
		return err
	})
	return gone, err
}

// removeOnce is one attempt against the entry current. options are the callee's own:
// upstream's rules write their defaults into them.
func (q *request) removeOnce(ctx context.Context, current *sqlstore.Entry, name string, options *metav1.DeleteOptions) (removal, error) {
	if current == nil {
		return removal{}, errors.NewNotFound(q.groupResource(), name)
	}
	obj, err := q.load(current)
	if err != nil {
		return removal{}, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return removal{}, err
	}
	if q.kind.BeginDelete != nil {
		if done, gone, err := q.beginDelete(ctx, current, obj, m, options); done || err != nil {
			return gone, err
		}
	}
	old := q.copyForAdmission(obj)
	graceful, pending, err := rest.BeforeDelete(q.kind.Delete, ctx, obj, options)
	if err != nil {
		return removal{}, err
	}
	if pending {
		return q.answerRemoved(current, m, false), nil
	}
	if err := q.admitDelete(ctx, old, name, options); err != nil {
		return removal{}, err
	}
	if finalizers, changed := gcFinalizers(ctx, q.kind.Delete, m, options); changed {
		m.SetFinalizers(finalizers)
	}
	held := len(m.GetFinalizers()) > 0
	if !graceful && !held {
		return q.removeNow(ctx, current, obj, m, options)
	}
	if !graceful {
		markDeleting(m, time.Now())
	}
	return q.removeMarked(ctx, current, obj, m, options)
}

// removeMarked stores an object that is marked for deletion, and deletes it if nothing
// holds it any longer.
func (q *request) removeMarked(ctx context.Context, current *sqlstore.Entry, obj runtime.Object, m metav1.Object, options *metav1.DeleteOptions) (removal, error) {
	dry := dryRun(options.DryRun)
	marked, err := q.commitObject(ctx, current, obj, dry)
	if err != nil {
		return removal{}, err
	}
	waits := len(m.GetFinalizers()) > 0 || *options.GracePeriodSeconds > 0
	if waits || dry {
		return removal{entry: marked, deleted: !waits}, nil
	}
	gone, err := q.removeNow(ctx, marked, obj, m, options)
	if alreadyGone(err) { // who saw the mark was faster
		return q.answerRemoved(marked, m, true), nil
	}
	return gone, err
}

// copyForAdmission is the object before the rules of deletion mark it.
func (q *request) copyForAdmission(obj runtime.Object) runtime.Object {
	if !q.admits(admission.Delete) {
		return nil
	}
	return obj.DeepCopyObject()
}

// admitDelete asks admission, after the rules: who names another object than there is hears
// of that first, and what has been asked about is not asked about again.
func (q *request) admitDelete(ctx context.Context, old runtime.Object, name string, options *metav1.DeleteOptions) error {
	if !q.admits(admission.Delete) {
		return nil
	}
	a := q.attributes(admission.Delete, nil, old, options, name, dryRun(options.DryRun))
	if err := q.mutate(ctx, a); err != nil {
		return err
	}
	return q.validate(ctx, a)
}

// beginDelete is the first phase for kinds that are held by more than finalizers. done
// says that the request ends with it.
func (q *request) beginDelete(ctx context.Context, current *sqlstore.Entry, obj runtime.Object, m metav1.Object, options *metav1.DeleteOptions) (done bool, gone removal, err error) {
	if err := q.checkPreconditions(m, options.Preconditions); err != nil {
		return true, gone, err
	}
	if m.GetDeletionTimestamp() != nil {
		return q.kind.BeginDelete(obj), removal{entry: current}, nil
	}
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	if options.Preconditions.UID == nil { // as upstream, before it asks admission
		options.Preconditions.UID = new(types.UID)
		*options.Preconditions.UID = m.GetUID()
	}
	if err := q.admitDelete(ctx, q.copyForAdmission(obj), m.GetName(), options); err != nil {
		return true, gone, err
	}
	q.kind.BeginDelete(obj)
	if orphan := orphanDependents(options); orphan != nil && !*orphan {
		foreground := metav1.DeletePropagationForeground // of the other kinds it is background
		options = &metav1.DeleteOptions{PropagationPolicy: &foreground, DryRun: options.DryRun}
	}
	now := metav1.Now()
	m.SetDeletionTimestamp(&now)
	if finalizers, changed := gcFinalizers(ctx, q.kind.Delete, m, options); changed {
		m.SetFinalizers(finalizers)
	}
	entry, err := q.commitObject(ctx, current, obj, dryRun(options.DryRun))
	return true, removal{entry: entry}, err
}

func (q *request) checkPreconditions(m metav1.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != m.GetUID() {
		return errors.NewConflict(q.groupResource(), m.GetName(), preconditionError("UID", string(*p.UID), string(m.GetUID())))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return errors.NewConflict(q.groupResource(), m.GetName(), preconditionError("ResourceVersion", *p.ResourceVersion, m.GetResourceVersion()))
	}
	return nil
}

func preconditionError(what, want, have string) error {
	return stderrors.New("Precondition failed: " + what + " in precondition: " + want + ", " + what + " in object meta: " + have)
}

// commitObject stores an object that a deletion has marked.
func (q *request) commitObject(ctx context.Context, current *sqlstore.Entry, obj runtime.Object, dry bool) (*sqlstore.Entry, error) {
	value, err := q.encode(obj)
	if err != nil {
		return nil, err
	}
	return q.overwrite(ctx, current, value, dry)
}

// alreadyGone tells whether a change came too late because its object has been deleted.
func alreadyGone(err error) bool {
	var conflict *sqlstore.ConflictError
	return stderrors.As(err, &conflict) && conflict.Current == nil
}

// removeNow deletes an object without further ado.
func (q *request) removeNow(ctx context.Context, current *sqlstore.Entry, obj runtime.Object, m metav1.Object, options *metav1.DeleteOptions) (removal, error) {
	entry, err := q.commit(ctx, sqlstore.Tombstone(current), dryRun(options.DryRun))
	if err != nil {
		return removal{}, err
	}
	q.afterDelete(obj, options.DryRun)
	return q.answerRemoved(entry, m, true), nil
}

// answerRemoved is upstream's finalizeDelete: the object for some kinds, else a Status
// that lets the client tell this incarnation from a later one.
func (q *request) answerRemoved(e *sqlstore.Entry, m metav1.Object, deleted bool) removal {
	if q.kind.ReturnDeleted {
		return removal{deleted: deleted, entry: e}
	}
	return removal{deleted: deleted, status: &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name:  m.GetName(),
			Group: q.kind.Group,
			Kind:  q.kind.Resource, // upstream puts the resource here
			UID:   m.GetUID(),
		},
	}}
}

// markDeleting gives an object without graceful deletion its deletionTimestamp, with
// which its finalizers' owners begin their work.
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
