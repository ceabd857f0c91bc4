package past

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Mistake is an error in what the user wrote, which says what to write instead.
type Mistake struct {
	text   string
	Future bool // it is a time that has not come yet
}

func (m *Mistake) Error() string { return m.text }

func mistakef(format string, args ...any) error { return &Mistake{text: fmt.Sprintf(format, args...)} }

// ErrNoHistory is the error of a server without the group history.plinth.io.
var ErrNoHistory = errors.New("has no history: it is not a plinth, or one older than this command")

// noRevision is what the server says about a revision above the newest.
var noRevision = regexp.MustCompile(`there is no revision ([0-9]+); the newest is ([0-9]+)`)

// FutureRevisionError says that a revision that the user wrote is none yet.
type FutureRevisionError struct{ Revision, Newest string }

func (e *FutureRevisionError) Error() string {
	return fmt.Sprintf("there is no revision %s, the newest is %s; %s", e.Revision, e.Newest, momentHelp)
}

// explain says in one line what an error of the history group means.
func (h *History) explain(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && apierrors.IsNotFound(err) && !h.kinds.hasHistory():
		return fmt.Errorf("%s %w", h.server.host, ErrNoHistory)
	case apierrors.IsBadRequest(err) && noRevision.MatchString(err.Error()):
		found := noRevision.FindStringSubmatch(err.Error())
		return &FutureRevisionError{found[1], found[2]}
	case apierrors.IsResourceExpired(err):
		return fmt.Errorf("%w%s; plinth log TYPE/NAME shows what is kept", err, h.because())
	}
	return h.server.unreachable(err)
}

// unreachable names the server if it did not answer.
func (s *server) unreachable(err error) error {
	if s.distrust != nil {
		if told := s.distrust(err); told != nil {
			return told
		}
	}
	var detail *url.Error
	if errors.As(err, &detail) {
		return fmt.Errorf("cannot reach %s: %w; write another --kubeconfig or --context, or start plinth serve", s.host, detail.Err)
	}
	return err
}

// noSuchKind is the error for a type that the server does not serve.
func (k *Kinds) noSuchKind(text string, err error) error {
	if strings.Contains(text, ",") {
		return mistakef("%q: write one type", text)
	}
	if members := k.category(text); len(members) > 0 {
		return mistakef("%q stands for several types: write one of them, such as %s", text, members[0])
	}
	if meta.IsNoMatchError(err) {
		return &UnknownKindError{text}
	}
	return k.server.unreachable(err)
}

// UnknownKindError says that the server does not serve a type.
type UnknownKindError struct{ Type string }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the server does not have the type %q; if its definition was deleted, "+
		"plinth trash customresourcedefinitions shows it, and plinth undelete brings it back", e.Type)
}
