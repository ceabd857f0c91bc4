package rest

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiadmission "k8s.io/apiserver/pkg/admission"
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Deletion of objects that cannot be decrypted, or are damaged, with upstream's option of that name. Admission and
// finalizers are ignored, because the object's content is not known. Objects that cannot be decrypted are deleted only
// with upstream's feature, because their key may come back. Damaged objects can always be deleted, so that an admin can
// end the refusals that they cause.

const (
	unsafeOption     = "ignoreStoreReadErrorWithClusterBreakingPotential"
	unsafeVerb       = "unsafe-delete-ignore-read-errors"
	unsafeAnnotation = "apiserver.k8s.io/unsafe-delete-ignore-read-error"
)

func isUnsafe(options *metav1.DeleteOptions) bool {
	return ptr.Deref(options.IgnoreStoreReadErrorWithClusterBreakingPotential, false)
}

// isDamaged says that the request's object is there and is damaged.
func (q *request) isDamaged() bool {
	if q.name == "" {
		return false
	}
	e := q.api.store.Get(q.key())
	if u := unreadableOf(e); u != nil {
		return u.Damaged()
	}
	return q.isUndecodable(e)
}

// isUndecodable says that an object can be read but not decoded, because a field has a wrong type. Objects that decide
// about requests are checked when they are read from the database; other objects, and parts of definitions, are not.
func (q *request) isUndecodable(e *sqlstore.Entry) bool {
	if e == nil || e.Unreadable() != nil {
		return false
	}
	var undecodable *kind.UndecodableError
	_, err := q.kind.Codec.Load(e.Value)
	return errors.As(err, &undecodable)
}

// deleteUnsafe deletes the object if it cannot be read.
func (q *request) deleteUnsafe(options *metav1.DeleteOptions) error {
	apiaudit.AddAuditAnnotation(q.ctx, unsafeAnnotation, "")
	if q.sub != nil {
		return apierrors.NewInternalError(errors.New("no unsafe deleter provided, can not honor " + unsafeOption))
	}
	if err := q.authorizeUnsafe(options); err != nil {
		return err
	}
	if _, err := q.api.store.Sync(q.ctx); err != nil {
		return err
	}
	current := q.api.store.Get(q.key())
	if current != nil && isAway(current.Unreadable()) {
		return current.Unreadable()
	}
	if current == nil {
		return apierrors.NewNotFound(q.groupResource(), q.name)
	}
	if current.Unreadable() == nil && !q.isUndecodable(current) {
		return apierrors.NewConflict(q.groupResource(), q.name,
			storage.NewInvalidObjError(q.upstreamKey(q.key()), "unsafe deletion is not allowed because the object is decodable from storage"))
	}
	if !dryRun(options.DryRun) {
		if _, err := q.api.store.Commit(q.ctx, object.Tombstone(current)); err != nil && !alreadyGone(err) {
			return err
		}
	}
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Code:     http.StatusOK,
		Details:  &metav1.StatusDetails{Name: q.name, Kind: q.kind.Kind},
	}
	q.auditAnswer(status)
	response.WriteObject(q.w, q.r, http.StatusOK, response.Output{MediaType: q.out.MediaType, Pretty: q.out.Pretty}, status)
	return nil
}

// authorizeUnsafe asks for the permission that this deletion needs besides delete.
func (q *request) authorizeUnsafe(options *metav1.DeleteOptions) error {
	if q.api.o.Authorizer == nil {
		return apierrors.NewInternalError(errors.New("no authorizer provided, unable to authorize unsafe delete"))
	}
	decision, reason, err := q.api.o.Authorizer.Authorize(q.ctx, authorizer.AttributesRecord{
		User: q.who, Verb: unsafeVerb, Namespace: q.namespace, Name: q.name,
		APIGroup: q.kind.Group, APIVersion: q.version, Resource: q.kind.Resource, ResourceRequest: true,
	})
	switch {
	case err != nil:
		err = fmt.Errorf("error while checking permission for %q, %w", unsafeVerb, err)
	case decision == authorizer.DecisionAllow:
		return nil
	default:
		err = fmt.Errorf("not permitted to do %q, reason: %s", unsafeVerb, reason)
	}
	return apiadmission.NewForbidden(admitter{q}.attributes(apiadmission.Delete, nil, nil, options, q.name, false), err)
}

// refuseUnsafe refuses the option for the deletion of a collection.
func refuseUnsafe(options *metav1.DeleteOptions) error {
	if !isUnsafe(options) {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", field.ErrorList{
		field.Invalid(field.NewPath(unsafeOption), true, "is not allowed with DELETECOLLECTION, try again after removing the option"),
	})
}
