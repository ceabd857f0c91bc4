package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiadmission "k8s.io/apiserver/pkg/admission"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// create stores a new object, or answers a review, a binding, an eviction.
func (q *request) create() error {
	obj, options, err := q.readNew()
	if err != nil {
		return err
	}
	n := creation{q: q, options: options}
	m, err := meta.Accessor(obj)
	if err != nil && q.sub != nil { // a body without metadata: DeploymentRollback
		return n.handOver(q.rulesContext(), obj)
	}
	if err != nil {
		return err
	}
	if !q.keepsSystemFields() {
		apirest.WipeObjectMetaSystemFields(m)
	}
	if err := apirest.EnsureObjectNamespaceMatchesRequestNamespace(q.namespace, m); err != nil {
		return err
	}
	dedupOwners(m, q.warn, duplicateOwners)
	nothing, err := q.codec().NewVersioned(q.gvk().GroupVersion())
	if err != nil {
		return err
	}
	obj = q.track(nothing, obj, options.FieldManager)
	ctx := q.rulesContext()
	if q.sub != nil || q.kind.Virtual != nil {
		return n.handOver(ctx, obj)
	}
	entry, err := n.store(ctx, obj)
	if err != nil {
		return err
	}
	return q.respondEntry(http.StatusCreated, entry)
}

// readNew reads the body and the options of a create.
func (q *request) readNew() (runtime.Object, *metav1.CreateOptions, error) {
	media, err := q.inputMedia(q.r.Header.Get("Content-Type"))
	if err != nil {
		return nil, nil, err
	}
	body, err := q.body()
	if err != nil {
		return nil, nil, err
	}
	options := &metav1.CreateOptions{}
	err = q.options("CreateOptions", options, &options.TypeMeta, func() field.ErrorList { return validation.ValidateCreateOptions(options) })
	if err != nil {
		return nil, nil, err
	}
	obj, err := q.decode(media, body, fieldValidation(options.FieldValidation))
	return obj, options, err
}

// creation makes one new object, for a create or for an update that may create.
type creation struct {
	q          *request
	options    *metav1.CreateOptions
	keepFields bool // managed fields are stored however large they are
}

// errClosed is why no custom resource is created whose definition is being deleted.
var errClosed = errors.New("create not allowed while custom resource definition is terminating")

// store lets admission change a new object, and inserts it.
func (n creation) store(ctx context.Context, obj runtime.Object) (*sqlstore.Entry, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if n.q.kind.Custom != nil && n.q.kind.Custom.Terminating {
		return nil, apierrors.NewForbidden(n.q.groupResource(), m.GetName(), errClosed)
	}
	ask := admitter{n.q}
	if err := ask.mutate(ctx, ask.attributes(apiadmission.Create, obj, nil, n.options, m.GetName(), dryRun(n.options.DryRun))); err != nil {
		return nil, err
	}
	dedupOwners(m, n.q.warn, duplicateOwnersAdmitted)
	if err := n.q.authorizeContents(ctx, obj, nil); err != nil {
		return nil, err
	}
	if m.GetGenerateName() == "" || m.GetName() != "" {
		return n.insert(ctx, obj)
	}
	return n.insertGenerated(ctx, obj)
}

// generateAttempts is how many generated names are tried (KEP-4420).
const generateAttempts = 8

func (n creation) insertGenerated(ctx context.Context, obj runtime.Object) (entry *sqlstore.Entry, err error) {
	for range generateAttempts {
		entry, err = n.insert(ctx, obj.DeepCopyObject())
		if err == nil || !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return entry, err
}

// insert runs an object through the create rules and commits it.
func (n creation) insert(ctx context.Context, obj runtime.Object) (*sqlstore.Entry, error) {
	ctx, end := attempt(ctx)
	defer end()
	q := n.q
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	apirest.FillObjectMetaSystemFields(m)
	if m.GetGenerateName() != "" && m.GetName() == "" {
		m.SetName(q.kind.Create.GenerateName(m.GetGenerateName()))
	}
	if q.kind.Hooks.CompleteNew != nil {
		if err := q.kind.Hooks.CompleteNew(ctx, obj); err != nil {
			return nil, err
		}
	}
	finish, err := q.beginCreate(ctx, obj, n.options)
	if err != nil {
		return nil, err
	}
	change, err := n.change(ctx, obj, m)
	if err != nil {
		finish(ctx, false)
		return nil, err
	}
	entry, err := q.api.commit(ctx, change, dryRun(n.options.DryRun))
	finishCommitted(ctx, finish, err)
	return entry, q.createError(err, m)
}

// change is what stores a new object, if the rules and admission let it.
func (n creation) change(ctx context.Context, obj runtime.Object, m metav1.Object) (change sqlstore.Change, err error) {
	q := n.q
	if err := q.createRules(ctx, obj); err != nil {
		return change, err
	}
	ask, dry := admitter{q}, dryRun(n.options.DryRun)
	if err := ask.validate(ctx, ask.attributes(apiadmission.Create, obj, nil, n.options, m.GetName(), dry)); err != nil {
		return change, err
	}
	version, versioned := givenVersion(m)
	if versioned && version != 0 && !dry {
		return change, response.Unreasoned(storage.ErrResourceVersionSetOnCreate)
	}
	value, err := q.encodeWithin(obj, n.keepFields)
	if err != nil {
		return change, err
	}
	change = sqlstore.Change{Key: q.kind.Key(m.GetNamespace(), m.GetName()), Value: value}
	if dry && versioned {
		change.Value = object.Splice(value, version)
	}
	return change, nil
}

// createRules lets the Kind's strategy complete and check a new object.
func (t *target) createRules(ctx context.Context, obj runtime.Object) error {
	if err := t.checkMeta(obj); err != nil {
		return err
	}
	if t.kind.Hooks.SetAside != nil {
		defer t.kind.Hooks.SetAside(obj)()
	}
	return apirest.BeforeCreate(t.createFewErrors(), ctx, obj)
}

// givenVersion returns the resourceVersion in the body of a create. A new object must have none.
// Like upstream, plinth ignores a resourceVersion that is not a number. A dry run ends before the
// check, so its answer shows the resourceVersion.
func givenVersion(m metav1.Object) (version int64, ok bool) {
	version, err := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
	return version, err == nil && version >= 0
}

// createError turns an error of the commit into upstream's answer: the object exists already, or
// its name cannot be stored.
func (t *target) createError(err error, m metav1.Object) error {
	if errors.Is(err, changelog.ErrKey) {
		return apierrors.NewInvalid(t.gvk().GroupKind(), m.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), m.GetName(), err.Error()),
		})
	}
	var conflict *sqlstore.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	if m.GetGenerateName() != "" {
		return apierrors.NewGenerateNameConflict(t.groupResource(), m.GetName(), 1)
	}
	exists := apierrors.NewAlreadyExists(t.groupResource(), m.GetName())
	if beingDeleted(conflict.Current) {
		exists.ErrStatus.Message = "object is being deleted: " + exists.ErrStatus.Message
	}
	return exists
}
