package past

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Step is one write that brings back what was: it changes an object, creates it again, or deletes it.
type Step struct {
	Target Target
	// Before is the object as it is, nil if it is not there; After is what is sent, nil to delete.
	Before, After *unstructured.Unstructured
	// Result is what the server made of After in a dry run, or After itself if there was none.
	Result *unstructured.Unstructured
	Lost   []metav1.OwnerReference     // left out of After, because these owners are gone
	Status bool                        // the status of the object is not brought back
	Token  bool                        // the token of a service account is not brought back
	Within []historyv1.ObjectReference // deleted with it

	was  types.UID               // of the object that is created again
	born map[types.UID]types.UID // the new uids of such objects; nil: of no interest
}

// Verb says what the step does to the object.
func (s *Step) Verb() string {
	switch {
	case s.After == nil:
		return "delete"
	case s.Before == nil:
		return "create"
	}
	return "change"
}

// Empty tells whether the step would change nothing.
func (s *Step) Empty() bool {
	lines, err := s.Diff(View{})
	return err == nil && len(lines) == 0
}

// Diff returns what the step changes.
func (s *Step) Diff(view View) ([]string, error) {
	if s.After == nil {
		return view.Compare(s.Before, nil)
	}
	return view.Compare(s.Before, s.Result)
}
