package response

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TextError is an answer in plain text. Upstream's server gives such answers before any API
// is concerned.
type TextError struct {
	Code int
	Text string
}

func (e *TextError) Error() string { return e.Text }

// ErrNoPath is the answer for paths that are not the API's, and for API groups that are
// not served.
var ErrNoPath = &TextError{http.StatusNotFound, "404 page not found"}

// WriteError answers with err as a metav1.Status in an encoding that the client accepts,
// JSON if it accepts none. A TextError stays text.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	StatusObjects.WriteError(w, r, err)
}

// WriteError is the function of that name, with the encodings that are offered.
func (o Offer) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	var text *TextError
	if errors.As(err, &text) {
		http.Error(w, text.Text, text.Code)
		return
	}
	status := StatusOf(err)
	if status == outOfTime {
		AuditAnswer(r.Context(), status)
		writeOutOfTime(w)
		return
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	out, ok := Negotiate(r, o)
	if ok {
		AuditAnswer(r.Context(), status)
	} else { // upstream's audit log has only the code then
		out = Output{MediaType: MediaJSON, Pretty: true}
	}
	WriteObject(w, r, int(status.Code), out, status)
}

// outOfTime is the answer to a request that took longer than it may.
var outOfTime = &metav1.Status{
	Status:  metav1.StatusFailure,
	Code:    http.StatusGatewayTimeout,
	Reason:  metav1.StatusReasonTimeout,
	Message: "Timeout: request did not complete within the allotted timeout",
	Details: &metav1.StatusDetails{},
}

// writeOutOfTime answers as upstream's timeout filter does: with a Status without a kind, whose
// Content-Type is text, whatever the client accepts.
func writeOutOfTime(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusGatewayTimeout)
	_ = json.NewEncoder(w).Encode(outOfTime) // the client may be gone
}

// StatusOf is the one table from errors to statuses.
func StatusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		if IsOutOfTime(err) {
			return outOfTime
		}
		api = fromStore(err)
	}
	status := api.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

// retryAfterSeconds is what a client is told to wait when the database is away.
const retryAfterSeconds = 1

// fromStore turns an error of the store into a status, for errors that no verb has translated.
func fromStore(err error) apierrors.APIStatus {
	var secret *sqlstore.Unreadable
	switch {
	case errors.As(err, &secret) && !errors.Is(err, changelog.ErrUnavailable): // a write that could not be encrypted
		return apierrors.NewInternalError(secret.Err)
	case errors.Is(err, changelog.ErrUnknown):
		return apierrors.NewTimeoutError("the write was sent to the database, but whether it was stored is not known: "+err.Error(), 0)
	case errors.Is(err, changelog.ErrFull):
		full := unavailable(err)
		full.ErrStatus.Details = nil // no Retry-After: a retry frees no space
		return full
	case errors.Is(err, changelog.ErrUnavailable), errors.Is(err, changelog.ErrClosed):
		return unavailable(err)
	case errors.Is(err, changelog.ErrCompacted):
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	case errors.Is(err, sqlstore.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	return apierrors.NewInternalError(err)
}

// IsOutOfTime tells whether an error comes from the end of the request's own time. Errors
// of the database may wrap that end too. They say more, so they do not count.
func IsOutOfTime(err error) bool {
	if errors.Is(err, changelog.ErrUnknown) || errors.Is(err, changelog.ErrUnavailable) {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func unavailable(err error) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: err.Error(),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

// TooLargeVersion answers a read at a resourceVersion that was not reached within the wait
// (upstream: storage.NewTooLargeResourceVersionError).
func TooLargeVersion(asked uint64, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), retryAfterSeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// UnsupportedMediaType refuses a body by its Content-Type.
func UnsupportedMediaType(supported []string) error {
	return mediaError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join(supported, ", ")))
}

// NotAcceptable refuses a client that accepts none of the media types there are.
func NotAcceptable(supported []string) error {
	return mediaError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("only the following media types are accepted: %s", strings.Join(supported, ", ")))
}

func mediaError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// Unreasoned is upstream's answer to input that a library refuses with an error of its own: a
// 500 without a reason, although nothing is wrong with the server.
func Unreasoned(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// AsStatus returns an error that is a status as it is. Of any other, upstream answers the
// text alone, as Unreasoned does.
func AsStatus(err error) error {
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	return Unreasoned(err)
}

// FromRegistry is AsStatus for an error of an upstream registry, which may wrap a status or
// an error of the store.
func FromRegistry(err error) error {
	if StatusOf(err).Reason == metav1.StatusReasonInternalError {
		return AsStatus(err)
	}
	return err
}

// NotFound is upstream's answer for a path that no resource has.
func NotFound() error { return pathError(http.StatusNotFound) }

// MethodNotAllowed is upstream's answer for a method that a path does not have.
func MethodNotAllowed() error { return pathError(http.StatusMethodNotAllowed) }

func pathError(code int) error {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
}
