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
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Objects that cannot be decrypted, or are damaged. The answers are upstream's, which depend on the feature
// AllowUnsafeMalformedObjectDeletion; those about damaged objects always have the key.

// mostUnreadable is how many objects the answer to a list names.
const mostUnreadable = 100

func unsafeDeletes() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
}

// corruptText is upstream's text about a corrupt object. The revision of one that cannot be decrypted is always 0
// there.
func corruptText(u *sqlstore.Unreadable) error {
	if u.Damaged() {
		return fmt.Errorf("object not decodable revision=%d: %w", u.Revision, u.Err)
	}
	return fmt.Errorf("data from the storage is not transformable revision=0: %w", u.Err)
}

// upstreamKey is the key that upstream's errors name.
func (t *target) upstreamKey(key string) string {
	return t.kind.UpstreamPrefix() + strings.TrimPrefix(key, t.kind.Prefix())
}

func (t *target) corrupt(u *sqlstore.Unreadable) error {
	return storage.NewCorruptObjError(t.upstreamKey(u.Key), corruptText(u))
}

// named is why an object cannot be read, with its key if it is damaged.
func (t *target) named(u *sqlstore.Unreadable) error {
	if u.Damaged() {
		return fmt.Errorf("unable to decode key %q: %w", t.upstreamKey(u.Key), u.Err)
	}
	return u.Err
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
	return apierrors.NewInternalError(t.named(u))
}

// isAway tells an entry whose value is only in a database that cannot be used now from one that cannot be decrypted.
func isAway(err error) bool {
	return errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrClosed)
}

// unchangeable is the answer to a change of an entry that cannot be read; nil if it can be.
func (t *target) unchangeable(e *sqlstore.Entry) error {
	u := unreadableOf(e)
	switch {
	case u == nil:
		return nil
	case isAway(u):
		return u.Err
	case unsafeDeletes():
		return apierrors.NewInternalError(corruptText(u))
	}
	return apierrors.NewInternalError(t.named(u))
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
		if first.Damaged() {
			return apierrors.NewInternalError(t.named(first))
		}
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
func (t *target) unreadableEvent(e *sqlstore.Event, inside bool) error {
	u := unreadableOf(e.Entry)
	if u == nil && inside {
		u = unreadableOf(e.Prev)
	}
	if u == nil {
		return nil
	}
	if e.Type != sqlstore.Delete || !unsafeDeletes() {
		return apierrors.NewInternalError(t.named(u))
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", corruptText(u)),
	}}
}

// readableEvents returns the events before the first that cannot be read, and the error about
// that one.
func (t *target) readableEvents(events []*sqlstore.Event, inside bool) ([]*sqlstore.Event, error) {
	for i, e := range events {
		if err := t.unreadableEvent(e, inside); err != nil {
			return events[:i], err
		}
	}
	return events, nil
}
