package past

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Trash returns the deletions of objects that are not there any more, the newest first.
func (h *History) Trash(ctx context.Context, q Query) iter.Seq2[historyv1.Change, error] {
	type name struct{ resource, namespace, name string }
	return func(yield func(historyv1.Change, error) bool) {
		seen := map[name]bool{}
		limit := q.Limit
		q.Limit = 0 // of deletions, not of changes
		for change, err := range h.Changes(ctx, q.Without(historyv1.FieldAction, string(historyv1.Changed))) {
			if err != nil {
				yield(change, err)
				return
			}
			o := change.Object
			key := name{o.Resource, o.Namespace, o.Name}
			if seen[key] {
				continue
			}
			seen[key] = true
			if change.Action != historyv1.Deleted {
				continue // created again
			}
			if !yield(change, nil) {
				return
			}
			if limit--; limit == 0 {
				return
			}
		}
	}
}

// Undelete returns the step that creates a deleted object again: as it was when it was deleted, or as it
// was at a moment.
func (r *Reverter) Undelete(ctx context.Context, t Target, at Moment) (*Step, error) {
	there, err := r.current(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	if there != nil {
		return nil, fmt.Errorf("%s is there; plinth undo %s --to REVISION gives it an older state", t, t.words())
	}
	v, err := r.deleted(ctx, t, at)
	if err != nil {
		return nil, err
	}
	return r.stepAnew(ctx, t, v, nil)
}

// UndeleteAll returns the deeds that create a deleted object again, and after it what Kubernetes' own
// components deleted because of it: what was in a namespace, the objects of a definition, and what it owned,
// without what a controller makes again.
func (r *Reverter) UndeleteAll(ctx context.Context, t Target) ([]*Deed, error) {
	there, err := r.current(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	if there != nil {
		return nil, fmt.Errorf("%s is there; plinth undo %s --to REVISION gives it an older state", t, t.words())
	}
	if _, err := r.deleted(ctx, t, Moment{}); err != nil {
		return nil, err
	}
	d, err := r.deletion(ctx, t)
	if err != nil {
		return nil, err
	}
	followed, err := r.follow(ctx, []*Deed{d}, t.Namespace)
	return append([]*Deed{d}, followed...), err
}

// deletion returns the deed that deleted an object, which began with the request for that. Where the object
// had finalizers, others have ended it.
func (r *Reverter) deletion(ctx context.Context, t Target) (*Deed, error) {
	d := &Deed{}
	for change, err := range r.history.Changes(ctx, Query{}.ToObject(t)) {
		switch {
		case err != nil:
			return nil, err
		case d.newest.Revision == 0:
			d.Object, d.Changes, d.newest = change.Object, []historyv1.Change{change}, change
		case change.Object.CreateRevision != d.Object.CreateRevision:
			return d, nil
		case strings.HasPrefix(change.Verb, "delete"):
			d.Changes = []historyv1.Change{change}
		}
		d.order = d.Changes[0].Revision
	}
	return d, nil
}

func (r *Reverter) deleted(ctx context.Context, t Target, at Moment) (*historyv1.Version, error) {
	if !at.IsNow() {
		return r.history.MustBeAt(ctx, t, at)
	}
	v, err := first(r.history.Versions(ctx, Query{Limit: 1}.ToObject(t).With(historyv1.FieldAction, string(historyv1.Deleted))))
	if err == nil && v == nil {
		if err := r.history.MayGet(ctx, t); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s is not there, and no deletion of it is kept; plinth trash %s%s lists what can be brought back%s", t, t.Kind.Name(), t.flag(), r.history.because())
	}
	return v, err
}

// stepAnew returns the step that creates the object of a version again. born has the new uids of owners
// that were created again before it, and gets the object's.
func (r *Reverter) stepAnew(ctx context.Context, t Target, v *historyv1.Version, born map[types.UID]types.UID) (*Step, error) {
	old, err := Object(v)
	if err != nil {
		return nil, err
	}
	if isAccountToken(old) && hasFixedToken(old) {
		return nil, fmt.Errorf("%s is the token of a service account, and a Secret of that name would have the same one again, which its deletion has taken back; create one of another name", t)
	}
	s := &Step{Target: t, After: anew(old), Token: isAccountToken(old), was: old.GetUID(), born: born}
	if owners := s.After.GetOwnerReferences(); len(owners) > 0 {
		renameOwners(owners, born)
		s.After.SetOwnerReferences(owners)
	}
	if _, has := s.After.Object["status"]; has && r.kinds.hasStatus(t.Kind) {
		s.Status = true
		delete(s.After.Object, "status")
	}
	s.Lost, err = r.dropLostOwners(ctx, s.After)
	s.Result = s.After
	return s, err
}
