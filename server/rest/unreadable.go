package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/plinth-io/plinth/sqlstore"
)

// Objects that cannot be decrypted. The answers are upstream's, which depend on the feature
// AllowUnsafeMalformedObjectDeletion.

// mostUnreadable is how many objects the answer to a list names.
const mostUnreadable = 100

func unsafeDeletes() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
}

// notTransformable is upstream's text about a corrupt object. The revision is always 0 there.
func notTransformable(err error) error {
	return fmt.Errorf("data from the storage is not transformable revision=0: %w", err)
}

// upstreamKey is the key that upstream's errors name.
func (t *target) upstreamKey(key string) string {
	return t.kind.UpstreamPrefix() + strings.TrimPrefix(key, t.kind.Prefix())
}

func (t *target) corrupt(u *sqlstore.Unreadable) error {
	return storage.NewCorruptObjError(t.upstreamKey(u.Key), notTransformable(u.Err))
}

// unreadableOf returns why an entry cannot be read; nil if it can be, or if there is none. errors.As would put a
// pointer on the heap for each item of a list and each event of a watch.
func unreadableOf(e *sqlstore.Entry) *sqlstore.Unreadable {
	if e == nil {
		return nil
	}
	u, _ := e.Unreadable().(*sqlstore.Unreadable)
	return u
}

// unreadable is the answer to a get or a delete of an entry that cannot be read; nil if it can be.
func (t *target) unreadable(e *sqlstore.Entry) error {
	u := unreadableOf(e)
	switch {
	case u == nil:
		return nil
	case isAway(u):
		return u.Err
	case unsafeDeletes():
		return apierrors.NewInternalError(t.corrupt(u))
	}
	return apierrors.NewInternalError(u.Err)
}

// isAway tells an entry whose value is only in a database that cannot be used now from one that cannot be decrypted.
func isAway(err error) bool {
	return errors.Is(err, sqlstore.ErrUnavailable) || errors.Is(err, sqlstore.ErrClosed)
}

// unchangeable is the answer to a change of an entry that cannot be read; nil if it can be.
func unchangeable(e *sqlstore.Entry) error {
	u := unreadableOf(e)
	switch {
	case u == nil:
		return nil
	case isAway(u):
		return u.Err
	case unsafeDeletes():
		return apierrors.NewInternalError(notTransformable(u.Err))
	}
	return apierrors.NewInternalError(u.Err)
}

// unreadableList turns the error of a list some of whose objects cannot be read into the answer;
// it returns other errors as they are.
func (t *target) unreadableList(err error) error {
	var bad *sqlstore.UnreadableError
	if !errors.As(err, &bad) {
		return err
	}
	if !unsafeDeletes() {
		first := bad.Objects[0]
		return apierrors.NewInternalError(fmt.Errorf("unable to transform key %q: %w", t.upstreamKey(first.Key), first.Err))
	}
	var causes []metav1.StatusCause
	for i, u := range bad.Objects {
		if i == mostUnreadable {
			causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
			break
		}
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: t.upstreamKey(u.Key), Message: t.corrupt(u).Error(),
		})
	}
	gr := t.groupResource()
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{Group: gr.Group, Kind: gr.Resource, Name: "list", Causes: causes},
		Message: fmt.Sprintf("failed to read one or more %s from the storage", gr.String()),
	}}
}

// unreadableEvent is what a watch ends with at an event that cannot be read; nil if it can be.
func unreadableEvent(e *sqlstore.Event, inside bool) error {
	u := unreadableOf(e.Entry)
	if u == nil && inside {
		u = unreadableOf(e.Prev)
	}
	if u == nil {
		return nil
	}
	if e.Type != sqlstore.Delete || !unsafeDeletes() {
		return apierrors.NewInternalError(u.Err)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", notTransformable(u.Err)),
	}}
}

// readableEvents returns the events before the first that cannot be read, and the error about
// that one.
func readableEvents(events []*sqlstore.Event, inside bool) ([]*sqlstore.Event, error) {
	for i, e := range events {
		if err := unreadableEvent(e, inside); err != nil {
			return events[:i], err
		}
	}
	return events, nil
}
