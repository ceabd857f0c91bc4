package response

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestStatusOf checks the table from errors to statuses.
func TestStatusOf(t *testing.T) {
	for name, row := range map[string]struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		"a status":                     {apierrors.NewBadRequest("no"), 400, metav1.StatusReasonBadRequest},
		"a wrapped status":             {fmt.Errorf("read: %w", apierrors.NewBadRequest("no")), 400, metav1.StatusReasonBadRequest},
		"the request's time is over":   {context.DeadlineExceeded, 504, metav1.StatusReasonTimeout},
		"the client has gone":          {fmt.Errorf("wait: %w", context.Canceled), 504, metav1.StatusReasonTimeout},
		"an unknown outcome":           {fmt.Errorf("%w: %w", changelog.ErrUnknown, context.DeadlineExceeded), 504, metav1.StatusReasonTimeout},
		"the database is away":         {fmt.Errorf("%w: %w", changelog.ErrUnavailable, context.Canceled), 503, metav1.StatusReasonServiceUnavailable},
		"the disk is full":             {changelog.ErrFull, 503, metav1.StatusReasonServiceUnavailable},
		"the store is closed":          {changelog.ErrClosed, 503, metav1.StatusReasonServiceUnavailable},
		"a compacted revision":         {changelog.ErrCompacted, 410, metav1.StatusReasonExpired},
		"a value that is too large":    {sqlstore.ErrTooLarge, 413, metav1.StatusReasonRequestEntityTooLarge},
		"any other error":              {errors.New("broken"), 500, metav1.StatusReasonInternalError},
		"an error of a library":        {Unreasoned(errors.New("broken")), 500, ""},
		"a registry's plain error":     {FromRegistry(errors.New("broken")), 500, ""},
		"a registry's status":          {FromRegistry(apierrors.NewBadRequest("no")), 400, metav1.StatusReasonBadRequest},
		"a resourceVersion to come":    {TooLargeVersion(9, 8), 504, metav1.StatusReasonTimeout},
		"a path without a resource":    {NotFound(), 404, metav1.StatusReasonNotFound},
		"a method that a path has not": {MethodNotAllowed(), 405, metav1.StatusReasonMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			status := StatusOf(row.err)
			if status.Code != row.code || status.Reason != row.reason || status.Status != metav1.StatusFailure {
				t.Errorf("got %d %q %q, want %d %q", status.Code, status.Reason, status.Status, row.code, row.reason)
			}
		})
	}
}

// TestRetryAfter wants clients to be told when to come back if the database is away, and not if
// a retry makes no room.
func TestRetryAfter(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{changelog.ErrUnavailable, "1"},
		{changelog.ErrFull, ""},
	} {
		w := httptest.NewRecorder()
		WriteError(w, httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil), row.err)
		if got := w.Header().Get("Retry-After"); w.Code != http.StatusServiceUnavailable || got != row.want {
			t.Errorf("%v: got %d with Retry-After %q, want 503 with %q", row.err, w.Code, got, row.want)
		}
	}
}
