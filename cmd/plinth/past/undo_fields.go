package past

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/server/history/fieldsets"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// span is a range of changes of one object that are undone together: between them nobody else has changed it.
type span struct{ first, last int64 }

// takeBack returns the step that takes back the changes of spans, the newest first: the fields that they touched get
// what they had before, and all others stay as they are. It is nil if the object was not there before one of them.
func (r *Reverter) takeBack(ctx context.Context, t Target, current *unstructured.Unstructured, spans []span) (*Step, error) {
	wanted := current
	for _, s := range spans {
		before, after, err := r.history.around(ctx, t, s)
		if before == nil || err != nil {
			return nil, err
		}
		if wanted == current {
			if current, err = r.inVersionOf(ctx, t, current, before); err != nil {
				return nil, err
			}
			wanted = current
		}
		wanted = without(wanted, before, after)
	}
	return r.stepBack(ctx, t, current, wanted)
}

// around returns an object before and after a span; nothing if it was not there before.
func (h *History) around(ctx context.Context, t Target, s span) (before, after *unstructured.Unstructured, err error) {
	if before, err = h.objectAt(ctx, t, s.first-1); before == nil || err != nil {
		return nil, nil, h.notKept(t, s.first, err)
	}
	after, err = h.objectAt(ctx, t, s.last)
	return before, after, h.notKept(t, s.first, err)
}

// objectAt returns an object at a revision, nil if it was not there.
func (h *History) objectAt(ctx context.Context, t Target, revision int64) (*unstructured.Unstructured, error) {
	v, err := h.At(ctx, t, Moment{Revision: revision})
	if v == nil || err != nil {
		return nil, err
	}
	return Object(v)
}

// notKept explains an error if it says that what an object was before a revision is not known any more.
func (h *History) notKept(t Target, revision int64, err error) error {
	if apierrors.IsResourceExpired(err) {
		return fmt.Errorf("what %s was before revision %d is not kept any more: %w", t, revision, err)
	}
	return err
}

// without returns what an object is without the changes that were made between before and after. Where the three are
// not of one API version, so that their fields have other names, it is what it was before.
func without(object, before, after *unstructured.Unstructured) *unstructured.Unstructured {
	if after == nil || before.GetAPIVersion() != after.GetAPIVersion() || before.GetAPIVersion() != object.GetAPIVersion() {
		return before
	}
	lists := fieldsets.ListsOf(before.Object, after.Object, object.Object)
	out := fieldsets.Revert(object.Object, fieldsets.Content(before.Object), fieldsets.Content(after.Object), lists)
	return &unstructured.Unstructured{Object: out}
}

// noteSpan adds a change of the object to the spans of the user's changes. Changes come from the newest to the oldest.
// A write of the status is none that is undone, whoever made it, and it may touch more than the status.
func (d *Deed) noteSpan(change historyv1.Change, user string) {
	switch {
	case IsStatus(change) || !MadeBy(change.Description, user):
		d.apart = true
	case d.apart || len(d.spans) == 0:
		d.spans, d.apart = append(d.spans, span{change.Revision, change.Revision}), false
	default:
		d.spans[len(d.spans)-1].first = change.Revision
	}
	if change.Action != historyv1.Changed {
		d.whole = true
	}
}

// ByFields tells whether undoing the deed puts back the fields that the user has changed, and leaves all others as they
// are: also if others have changed the object since. Else the object gets the state from before.
func (d *Deed) ByFields() bool { return d.Verb() == "change" && !d.whole }

// undoFields returns the step that undoes a deed by fields, nil if the object is not there any more.
func (r *Reverter) undoFields(ctx context.Context, t Target, d *Deed) (*Step, error) {
	current, err := r.current(ctx, t, nil)
	switch {
	case current == nil || err != nil:
		return nil, err
	case current.GetDeletionTimestamp() != nil:
		return nil, errDeleting(t)
	}
	return r.takeBack(ctx, t, current, d.spans)
}

func errDeleting(t Target) error {
	return errors.New(t.String() + " is being deleted, which no undo can stop")
}
