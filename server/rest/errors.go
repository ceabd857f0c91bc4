package rest

import (
	"context"
	"encoding/json"
	stderrors "errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/sqlstore"
)

// TextError is an answer that upstream gives as plain text: that of its server where no
// API is concerned yet.
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
	var text *TextError
	if stderrors.As(err, &text) {
		http.Error(w, text.Text, text.Code)
		return
	}
	status := statusOf(err)
	if status == outOfTime {
		auditAnswer(r.Context(), status)
		writeOutOfTime(w)
		return
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	out, ok := negotiate(r, plainObjects)
	if ok {
		auditAnswer(r.Context(), status)
	} else { // upstream's audit log has only the code then
		out = output{mediaType: mediaJSON, pretty: true}
	}
	writeObject(w, r, int(status.Code), out, status)
}

// outOfTime is of a request that took longer than it may.
var outOfTime = &metav1.Status{
	Status:  metav1.StatusFailure,
	Code:    http.StatusGatewayTimeout,
	Reason:  metav1.StatusReasonTimeout,
	Message: "Timeout: request did not complete within the allotted timeout",
	Details: &metav1.StatusDetails{},
}

// writeOutOfTime answers in the odd way of upstream's timeout filter: a Status without a
// kind that is declared to be text, whatever the client accepts.
func writeOutOfTime(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusGatewayTimeout)
	_ = json.NewEncoder(w).Encode(outOfTime) // a client that is gone is nobody's error
}

// statusOf is the one table from errors to statuses.
func statusOf(err error) *metav1.Status {
	var api errors.APIStatus
	if !stderrors.As(err, &api) {
		if isOutOfTime(err) {
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

// fromStore translates an error that no verb has made a status of.
func fromStore(err error) errors.APIStatus {
	switch {
	case stderrors.Is(err, sqlstore.ErrUnknown):
		return errors.NewTimeoutError("the write was sent to the database, but whether it was stored is not known: "+err.Error(), 0)
	case stderrors.Is(err, sqlstore.ErrUnavailable), stderrors.Is(err, sqlstore.ErrClosed):
		return unavailable(err)
	case stderrors.Is(err, sqlstore.ErrCompacted):
		return errors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	case stderrors.Is(err, sqlstore.ErrTooLarge):
		return errors.NewRequestEntityTooLargeError(err.Error())
	}
	return errors.NewInternalError(err)
}

// isOutOfTime tells the end of the request's own time from what the database made of it.
func isOutOfTime(err error) bool {
	if stderrors.Is(err, sqlstore.ErrUnknown) || stderrors.Is(err, sqlstore.ErrUnavailable) {
		return false
	}
	return stderrors.Is(err, context.DeadlineExceeded) || stderrors.Is(err, context.Canceled)
}

func unavailable(err error) *errors.StatusError {
	return &errors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: err.Error(),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

func tooLargeBody(limit int64) error {
	return errors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}

// tooLargeVersion says that a resourceVersion has not come up within the wait (upstream:
// storage.NewTooLargeResourceVersionError).
func tooLargeVersion(asked uint64, current int64) error {
	err := errors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), retryAfterSeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

func unsupportedMedia(supported []string) error {
	return mediaError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join(supported, ", ")))
}

func notAcceptable(supported []string) error {
	return mediaError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("only the following media types are accepted: %s", strings.Join(supported, ", ")))
}

func mediaError(code int32, reason metav1.StatusReason, message string) error {
	return &errors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// unreasoned is how upstream answers input that a library refuses with an error of its
// own: a 500 without a reason, although nothing is wrong with the server.
func unreasoned(err error) error {
	return &errors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// conflictModified is upstream's answer to an update based on another version.
func conflictModified(gr schema.GroupResource, name string) error {
	return errors.NewConflict(gr, name, stderrors.New("the object has been modified; please apply your changes to the latest version and try again"))
}
