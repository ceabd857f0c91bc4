package past

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Undo returns the step that gives an object the state that it had at a moment. Without a moment it is
// the state before the newest change that a write can take back: changes of the status alone are not.
func (r *Reverter) Undo(ctx context.Context, t Target, to Moment) (*Step, error) {
	current, err := r.undoable(ctx, t)
	if err != nil {
		return nil, err
	}
	if to.IsNow() {
		return r.undoNewest(ctx, t, current)
	}
	v, err := r.history.MustBeAt(ctx, t, to)
	if err != nil {
		return nil, err
	}
	old, err := Object(v)
	if err != nil {
		return nil, err
	}
	return r.stepBack(ctx, t, current, old)
}

// UndoChange returns the step that takes back one change of an object: the fields that it touched get what they had before
// it, and what was changed after it stays.
func (r *Reverter) UndoChange(ctx context.Context, t Target, revision int64) (*Step, error) {
	current, err := r.undoable(ctx, t)
	if err != nil {
		return nil, err
	}
	change, err := first(r.history.Changes(ctx, Query{Limit: 1}.ToObject(t).Bound(historyv1.FieldUntil, Moment{Revision: revision})))
	switch {
	case err != nil:
		return nil, err
	case change == nil || change.Revision != revision:
		return nil, fmt.Errorf("revision %d changed something else than %s; plinth log %s lists its changes", revision, t, t.words())
	case change.Action != historyv1.Changed:
		return nil, fmt.Errorf("revision %d is no change of %s that can be taken back alone: it was %s", revision, t, change.Action)
	case IsStatus(*change):
		return nil, fmt.Errorf("revision %d changed the status of %s, which controllers write", revision, t)
	}
	step, err := r.takeBack(ctx, t, current, []span{{revision, revision}})
	if step == nil && err == nil {
		err = fmt.Errorf("what %s was before revision %d is not kept%s", t, revision, r.history.because())
	}
	return step, err
}

// undoable returns an object as it is, and an error if no undo can change it.
func (r *Reverter) undoable(ctx context.Context, t Target) (*unstructured.Unstructured, error) {
	newest, err := first(r.history.Changes(ctx, Query{Limit: 1}.ToObject(t)))
	if err != nil {
		return nil, err
	}
	current, err := r.current(ctx, t, nil)
	switch {
	case err != nil:
		return nil, err
	case current == nil && newest == nil:
		return nil, r.history.unknown(ctx, t)
	case current == nil:
		return nil, whyDeleted(t, newest.Description)
	case current.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%s is being deleted, which no undo can stop; when it is gone, plinth undelete %s brings it back", t, t.words())
	}
	return current, nil
}

// undoNewest looks for the newest change whose undoing makes a difference.
func (r *Reverter) undoNewest(ctx context.Context, t Target, current *unstructured.Unstructured) (*Step, error) {
	for change, err := range WithoutStatus(r.history.Changes(ctx, Query{}.ToObject(t))) {
		if err != nil {
			return nil, err
		}
		switch change.Action {
		case historyv1.Copied:
			return nil, fmt.Errorf("%s came with a copy or an import at revision %d: what it was before is not known; kubectl delete deletes it", t, change.Revision)
		case historyv1.Created:
			within, err := r.history.Within(ctx, t)
			return &Step{Target: t, Before: current, Within: within}, err
		}
		step, err := r.takeBack(ctx, t, current, []span{{change.Revision, change.Revision}})
		if step == nil && err == nil {
			break
		}
		if err != nil || !step.sameContent() {
			return step, err
		}
	}
	return nil, fmt.Errorf("%s has no older state that is kept%s", t, r.history.because())
}

// stepBack returns the step from an object as it is to what it was.
func (r *Reverter) stepBack(ctx context.Context, t Target, current, old *unstructured.Unstructured) (*Step, error) {
	current, err := r.inVersionOf(ctx, t, current, old)
	if err != nil {
		return nil, err
	}
	s := &Step{Target: t, Before: current, After: overwriting(current, old)}
	if r.kinds.hasStatus(t.Kind) {
		s.Status = true
		keepStatus(s.After, current)
	}
	s.Lost, err = r.dropLostOwners(ctx, s.After)
	s.Result = s.After
	return s, err
}

// inVersionOf returns an object as it is in the API version that it had.
func (r *Reverter) inVersionOf(ctx context.Context, t Target, current, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if current.GetAPIVersion() == old.GetAPIVersion() {
		return current, nil
	}
	current, err := r.current(ctx, t, old)
	if err == nil && current == nil {
		err = fmt.Errorf("%s has been stored as %s, which is not served any more", t, old.GetAPIVersion())
	}
	return current, err
}

// keepStatus gives an object the status that another has, or none.
func keepStatus(object, from *unstructured.Unstructured) {
	status, ok := from.Object["status"]
	if !ok {
		delete(object.Object, "status")
		return
	}
	object.Object["status"] = status
}

// sameContent tells whether what is sent has nothing that differs from what is there.
func (s *Step) sameContent() bool {
	lines, err := View{}.Compare(s.Before, s.After)
	return err == nil && len(lines) == 0
}
