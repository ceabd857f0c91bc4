package past

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore/sleep"
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

// Try plays the step in a dry run, so that what admission, defaults and validation make of it is known
// before anything is changed. Where the server cannot, because of a webhook with side effects, the
// result stays what is sent.
func (c *Client) Try(ctx context.Context, s *Step) error {
	if s.Result = s.After; s.After == nil {
		return nil
	}
	result, err := c.write(ctx, s, true)
	if apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "dry run") {
		return nil
	}
	if err != nil {
		return err
	}
	s.Result = result
	return nil
}

// Do plays the step, and returns the object; what was deleted, if it was a deletion.
func (c *Client) Do(ctx context.Context, s *Step, dry bool) (*unstructured.Unstructured, error) {
	if s.After == nil {
		options := metav1.DeleteOptions{Preconditions: preconditionsOf(s.Before), DryRun: dryRunOf(dry)}
		return s.Before, c.refused(s, c.endpoint(s.Target, s.Before).Delete(ctx, s.Target.Name, options))
	}
	result, err := c.write(ctx, s, dry)
	if err == nil && !dry && s.born != nil {
		s.born[s.was] = result.GetUID()
	}
	return result, err
}

func (c *Client) write(ctx context.Context, s *Step, dry bool) (result *unstructured.Unstructured, err error) {
	at := c.endpoint(s.Target, s.After)
	if s.Before == nil {
		result, err = at.Create(ctx, s.After, metav1.CreateOptions{FieldManager: undeleteManager, DryRun: dryRunOf(dry)})
	} else {
		result, err = at.Update(ctx, s.After, metav1.UpdateOptions{FieldManager: undoManager, DryRun: dryRunOf(dry)})
	}
	return result, c.refused(s, err)
}

// refused says what an error means for the one who wanted to bring something back.
func (c *Client) refused(s *Step, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status):
		return c.unreachable(err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s was changed meanwhile, nothing was undone; try again: %w", s.Target, err)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s is there again, nothing was changed: %w", s.Target, err)
	case apierrors.IsNotFound(err) && s.Before == nil && s.Target.Namespace != "":
		return fmt.Errorf("%s cannot be created, nothing was changed: %w; plinth undelete namespaces/%s brings its namespace back, and with --cascade what was in it",
			s.Target, err, s.Target.Namespace)
	}
	return fmt.Errorf("%s: refused, nothing was changed: %w", s.Target, err)
}

// settle bounds the time in which a kind is served whose definition was just created.
const settle = 10 * time.Second

// awaitKind is FindKind for a type whose definition may be a moment old.
func (c *Client) awaitKind(ctx context.Context, text string) (Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		kind, err := c.FindKind(text)
		var unknown *UnknownKindError
		if err == nil || !errors.As(err, &unknown) {
			return kind, err
		}
		if sleep.For(ctx, 100*time.Millisecond) != nil {
			return kind, err
		}
		c.forgetKinds()
	}
}
