package ui

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// errSignIn says that a visitor is not known.
var errSignIn = errors.New("sign in first")

// problemError is an answer that is no page.
type problemError struct {
	code int
	text string
}

func (e *problemError) Error() string { return e.text }

func problem(code int, format string, args ...any) error {
	return &problemError{code, fmt.Sprintf(format, args...)}
}

// explained is an error as visitors see it: what the API said, whole, and what to do.
type explained struct {
	Code         int
	Title        string
	Text, Advice string
}

// explain says what an error means.
func explain(err error) explained {
	var own *problemError
	var other *notKubernetesError
	var unknown *past.UnknownKindError
	var mistake *past.Mistake
	var future *past.FutureRevisionError
	var status apierrors.APIStatus
	var unreachable *url.Error
	var network *net.OpError
	var trust *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errSignIn):
		return explained{http.StatusUnauthorized, "Sign in", "This page is for those who are signed in.", "Open the address that plinth ui has printed: it lets one browser in."}
	case errors.As(err, &own):
		return explained{own.code, http.StatusText(own.code), own.text, ""}
	case errors.As(err, &other):
		return explained{http.StatusBadGateway, "No Kubernetes API", err.Error(), "Mend the address in the kubeconfig, or choose another context, and run plinth ui again."}
	case errors.Is(err, past.ErrNoHistory):
		return explained{http.StatusNotImplemented, "No history", "This server keeps no history.", "plinth does: every version of every object, who made it, and how to go back."}
	case errors.As(err, &unknown):
		return explained{http.StatusNotFound, "No such kind", err.Error(), ""}
	case errors.As(err, &mistake), errors.As(err, &future):
		return explained{http.StatusBadRequest, "Not understood", err.Error(), ""}
	case errors.As(err, &status):
		return ofStatus(err, int(status.Status().Code))
	case errors.As(err, &unreachable), errors.As(err, &network), errors.As(err, &trust):
		return explained{http.StatusBadGateway, "The server does not answer", err.Error(), "Start it, or choose another context and run plinth ui again."}
	}
	return explained{http.StatusInternalServerError, "That did not work", err.Error(), ""}
}

// ofStatus explains an error of the API.
func ofStatus(err error, code int) explained {
	e := explained{Code: cmp.Or(code, http.StatusInternalServerError), Title: cmp.Or(http.StatusText(code), "Error"), Text: err.Error()}
	switch {
	case apierrors.IsUnauthorized(err):
		e.Title, e.Advice = "Not signed in", "The credentials are not valid, or not any longer: a certificate or a token may have ended. plinth certs check shows certificates; kubectl auth whoami shows who you are."
	case apierrors.IsForbidden(err):
		e.Title, e.Advice = "No right to do this", "Whoever may write RoleBindings can give it to you. The page Rights shows what you may do."
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		e.Title, e.Advice = "Not kept any longer", "plinth serve --keep says how long old versions stay, such as --keep '*=7d'."
	case apierrors.IsNotFound(err):
		e.Title, e.Advice = "Not there", "It may have been deleted: the trash shows what was."
	case apierrors.IsConflict(err):
		e.Title, e.Advice = "Changed meanwhile", "Nothing was written. Look at it again, and try once more."
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		e.Title = "Refused"
	case apierrors.IsTooManyRequests(err):
		e.Advice = "The server is busy. Try again in a moment."
	}
	return e
}

// address is that of a request, whose path has lost the base.
func (s *Server) address(r *http.Request) string {
	return strings.TrimSuffix(s.base, "/") + r.URL.RequestURI()
}

// errorPage says what went wrong.
type errorPage struct {
	explained
	Written string // what the visitor has written into a form that cannot be shown any longer
}

// fail answers with an error: as a page, or as JSON for scripts.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	if r.Context().Err() != nil {
		return // nobody reads it
	}
	if r.Method == http.MethodGet && errors.Is(err, errSignIn) && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		showEntry(w, r, s.address(r)) // a link from elsewhere, with which browsers send no strict cookie; from within they do
		return
	}
	asPage := strings.Contains(r.Header.Get("Accept"), "text/html")
	if asPage && (errors.Is(err, errSignIn) || apierrors.IsUnauthorized(err)) && s.door.welcome(w, r, err) {
		return
	}
	e := errorPage{explain(err), r.PostForm.Get("text")}
	if !asPage {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(e.Code)
		fmt.Fprintln(w, strings.TrimSpace(e.Title+": "+e.Text+" "+e.Advice))
		return
	}
	if v == nil {
		showBare(w, r, e.Code, "error.html", e)
		return
	}
	if v.show("error.html", page{Title: e.Title, Code: e.Code, Body: e}) != nil {
		showBare(w, r, e.Code, "error.html", e)
	}
}
