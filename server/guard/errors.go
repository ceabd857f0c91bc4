package guard

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/server/response"
)

// The errors are in upstream's words.
var (
	// errStopping tells a client that is still connected to come back, to whichever server
	// listens then (server/filters/waitgroup.go).
	errStopping = apierrors.NewServiceUnavailable("apiserver is shutting down")

	errTooMany = &response.TextError{
		Code: http.StatusTooManyRequests, Text: "Too many requests, please try again later.",
	}

	// errPanic is for paths that are not the API's (server/filters/wrap.go).
	errPanic = &response.TextError{
		Code: http.StatusInternalServerError,
		Text: "This request caused apiserver to panic. Look in the logs for details.",
	}
)

// errInternal is upstream's answer to a request that it could not make sense of before
// anything else (endpoints/handlers/responsewriters/errors.go).
func errInternal(r *http.Request, err error) error {
	text := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").
		Replace(fmt.Sprintf("Internal Server Error: %q: %v", r.RequestURI, err))
	return &response.TextError{Code: http.StatusInternalServerError, Text: text}
}

// fail is the one place where an error becomes a response.
func (x *Call) fail(err error) {
	if _, ok := err.(*echo.HTTPError); ok {
		err = response.ErrNoPath
	}
	response.WriteError(x.Response(), x.Request(), err)
}
