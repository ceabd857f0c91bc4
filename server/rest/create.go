package rest

import (
	"bytes"
	"context"
	"encoding/json"
	stderrors "errors"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/sqlstore"
)

// create stores a new object, or answers a review, a binding, an eviction.
func (q *request) create() error {
	obj, options, err := q.readNew()
	if err != nil {
		return err
	}
	m, err := meta.Accessor(obj)
	if err != nil && q.sub != nil { // a body without metadata: DeploymentRollback
		return q.createUnstored(q.rulesContext(), obj, options)
	}
	if err != nil {
		return err
	}
	if !q.keepsSystemFields() {
		rest.WipeObjectMetaSystemFields(m)
	}
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(q.namespace, m); err != nil {
		return err
	}
	q.dedupOwners(m, false)
	if obj, err = q.trackNew(obj, options.FieldManager); err != nil {
		return err
	}
	ctx := q.rulesContext()
	if q.sub != nil || q.kind.Virtual != nil {
		return q.createUnstored(ctx, obj, options)
	}
	entry, err := q.admitAndInsert(ctx, obj, options)
	if err != nil {
		return err
	}
	return q.respondEntry(http.StatusCreated, entry)
}

// readNew reads the body and the options of a create.
func (q *request) readNew() (runtime.Object, *metav1.CreateOptions, error) {
	media, err := q.inputMedia()
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

func (q *request) admitAndInsert(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (*sqlstore.Entry, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := q.mutate(ctx, q.attributes(admission.Create, obj, nil, options, m.GetName(), dryRun(options.DryRun))); err != nil {
		return nil, err
	}
	q.dedupOwners(m, true)
	if m.GetGenerateName() == "" || m.GetName() != "" {
		return q.insert(ctx, obj, options)
	}
	return q.insertGenerated(ctx, obj, options)
}

// generateAttempts is how many generated names are tried (KEP-4420).
const generateAttempts = 8

func (q *request) insertGenerated(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (entry *sqlstore.Entry, err error) {
	for range generateAttempts {
		entry, err = q.insert(ctx, obj.DeepCopyObject(), options)
		if err == nil || !errors.IsAlreadyExists(err) {
			break
		}
	}
	return entry, err
}

// insert runs an object through the create rules and commits it.
func (q *request) insert(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (*sqlstore.Entry, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	rest.FillObjectMetaSystemFields(m)
	if m.GetGenerateName() != "" && m.GetName() == "" {
		m.SetName(q.kind.Create.GenerateName(m.GetGenerateName()))
	}
	if q.kind.BeforeCreate != nil {
		if err := q.kind.BeforeCreate(ctx, obj); err != nil {
			return nil, err
		}
	}
	finish, err := q.beginCreate(ctx, obj, options)
	if err != nil {
		return nil, err
	}
	change, err := q.creation(ctx, obj, m, options)
	if err != nil {
		finish(ctx, false)
		return nil, err
	}
	entry, err := q.commit(ctx, change, dryRun(options.DryRun))
	finishCommitted(ctx, finish, err)
	return entry, q.createError(err, m)
}

// creation is the change that stores a new object, if the rules and admission let it.
func (q *request) creation(ctx context.Context, obj runtime.Object, m metav1.Object, options *metav1.CreateOptions) (change sqlstore.Change, err error) {
	if err := q.createRules(ctx, obj); err != nil {
		return change, err
	}
	dry := dryRun(options.DryRun)
	if err := q.validate(ctx, q.attributes(admission.Create, obj, nil, options, m.GetName(), dry)); err != nil {
		return change, err
	}
	version, versioned := givenVersion(m)
	if versioned && version != 0 && !dry {
		return change, unreasoned(storage.ErrResourceVersionSetOnCreate)
	}
	value, err := q.store(obj)
	if err != nil {
		return change, err
	}
	change = sqlstore.Change{Key: q.kind.Key(m.GetNamespace(), m.GetName()), Value: value}
	if dry && versioned {
		change.Value = sqlstore.Splice(value, version)
	}
	return change, nil
}

// createRules has the kind's rules complete and check a new object.
func (q *request) createRules(ctx context.Context, obj runtime.Object) error {
	if q.kind.Conceal != nil {
		defer q.kind.Conceal(obj)()
	}
	return rest.BeforeCreate(q.kind.Create, ctx, obj)
}

// givenVersion is the resourceVersion that a new object names. It should name none: but
// what is no number is overlooked, and a dry run, which ends before this is checked
// upstream, shows it.
func givenVersion(m metav1.Object) (version int64, ok bool) {
	version, err := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
	return version, err == nil && version >= 0
}

// createError names the object that is in the way of a new one.
func (q *request) createError(err error, m metav1.Object) error {
	if stderrors.Is(err, sqlstore.ErrKey) {
		return errors.NewInvalid(q.gvk().GroupKind(), m.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), m.GetName(), err.Error()),
		})
	}
	var conflict *sqlstore.ConflictError
	if !stderrors.As(err, &conflict) {
		return err
	}
	if m.GetGenerateName() != "" {
		return errors.NewGenerateNameConflict(q.groupResource(), m.GetName(), 1)
	}
	exists := errors.NewAlreadyExists(q.groupResource(), m.GetName())
	if beingDeleted(conflict.Current) {
		exists.ErrStatus.Message = "object is being deleted: " + exists.ErrStatus.Message
	}
	return exists
}

// overwrite commits the new value of an object. One that is the same is confirmed only.
func (q *request) overwrite(ctx context.Context, current *sqlstore.Entry, value []byte, dry bool) (*sqlstore.Entry, error) {
	if unchanged := sqlstore.Splice(value, current.Revision); bytes.Equal(unchanged, current.JSON) {
		return q.api.store.Confirm(ctx, current)
	}
	return q.commit(ctx, sqlstore.Change{Key: current.Key, Expect: current.Revision, Value: value}, dry)
}

// commit appends one change, or with dryRun only checks its expectation and shows what
// would be stored.
func (q *request) commit(ctx context.Context, c sqlstore.Change, dry bool) (*sqlstore.Entry, error) {
	if !dry {
		return q.api.store.Commit(ctx, c)
	}
	if _, err := q.api.store.Sync(ctx); err != nil {
		return nil, err
	}
	current, revision := q.api.store.Get(c.Key), int64(0)
	if current != nil {
		revision = current.Revision
	}
	if revision != c.Expect {
		return nil, &sqlstore.ConflictError{Key: c.Key, Expect: c.Expect, Current: current}
	}
	if revision == 0 {
		return &sqlstore.Entry{Key: c.Key, JSON: c.Value}, nil
	}
	return sqlstore.NewEntry(&sqlstore.Row{Key: c.Key, Revision: revision, Value: c.Value}), nil
}

// dryRun reads the option of that name, whose values are validated before.
func dryRun(values []string) bool { return len(values) > 0 }

// beingDeleted tells whether an entry's object has a deletionTimestamp.
func beingDeleted(e *sqlstore.Entry) bool {
	if e == nil {
		return false
	}
	var m struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	}
	return json.Unmarshal(metadataJSON(e.JSON), &m) == nil && m.DeletionTimestamp != nil
}
