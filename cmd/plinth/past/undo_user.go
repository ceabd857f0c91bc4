package past

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Deed is what one user did to one object.
type Deed struct {
	Object  historyv1.ObjectReference // the newest
	Changes []historyv1.Change        // of the user, the newest first
	// Others are the changes of others after the first of the user, the newest first, without those of
	// Kubernetes' own components and those that ended a deletion that the user began. They are followed
	// by the newest change of each object of others that would be deleted with this one.
	Others []historyv1.Change
	// Because is the user's deed from which a deed of Kubernetes' own components followed, nil of the
	// user's own.
	Because *Deed
	newest  historyv1.Change        // of all
	order   int64                   // deeds are undone from the highest
	spans   []span                  // of the user's changes, the newest first
	apart   bool                    // somebody else's change is older than the last span
	whole   bool                    // the object was created or deleted among the changes
	born    map[types.UID]types.UID // of objects that were created again, shared by all deeds
}

// Verb says what has to be done to undo the deed: change, create, delete, or nothing because what was
// created is deleted again, even if somebody else has created another one since.
func (d *Deed) Verb() string {
	created, deleted := d.created(), d.isGone()
	switch {
	case created && (deleted || d.isReplaced()):
		return "nothing"
	case created:
		return "delete"
	case deleted:
		return "create"
	}
	return "change"
}

func (d *Deed) first() historyv1.Change { return d.Changes[len(d.Changes)-1] }

// created tells whether the object was not there before the user's first change.
func (d *Deed) created() bool { return d.first().Action == historyv1.Created }

// isGone tells whether the newest change of all deleted the object.
func (d *Deed) isGone() bool { return d.newest.Action == historyv1.Deleted }

// isReplaced tells whether the object that is there is another one than the user has changed.
func (d *Deed) isReplaced() bool {
	return d.newest.Object.CreateRevision != d.Changes[0].Object.CreateRevision
}

// forgetFinished removes the changes of objects that the user created and that were gone when others
// created the one that he changed after that.
func (d *Deed) forgetFinished() {
	if !d.created() {
		return
	}
	created := map[int64]bool{}
	for _, change := range d.Changes {
		if change.Action == historyv1.Created {
			created[change.Object.CreateRevision] = true
		}
	}
	for i, change := range d.Changes {
		if !created[change.Object.CreateRevision] {
			for i+1 < len(d.Changes) && d.Changes[i+1].Object.CreateRevision == change.Object.CreateRevision {
				i++
			}
			d.Changes = d.Changes[:i+1]
			return
		}
	}
}

// endsWith tells whether a change of somebody else belongs to a deletion that the user began: it removes
// a finalizer, or what is left then.
func (d *Deed) endsWith(change historyv1.Change) bool {
	newest := d.Changes[0]
	return strings.HasPrefix(newest.Verb, "delete") && change.Revision > newest.Revision &&
		change.Object.CreateRevision == newest.Object.CreateRevision
}

type objectName struct{ resource, namespace, name string }

func nameOf(o historyv1.ObjectReference) objectName {
	return objectName{o.Resource, o.Namespace, o.Name}
}

// Deeds returns what a user did to each object in a range, in the order in which it can be undone: the
// last first, so that what was created is deleted after what needs it, and what was deleted is created
// before it. What Kubernetes' own components deleted because the user deleted something follows on that.
// Changes of a status are left out. The query must have a bound in the past.
func (r *Reverter) Deeds(ctx context.Context, q Query, user string) ([]*Deed, error) {
	byName := map[objectName]*Deed{}
	var all []*Deed
	for change, err := range WithoutStatus(r.history.ByUser(ctx, q, user)) {
		if err != nil {
			return nil, err
		}
		if change.Action == historyv1.Copied { // the user has done that somewhere else, at another time
			continue
		}
		d := byName[nameOf(change.Object)]
		if d == nil {
			d = &Deed{Object: change.Object}
			byName[nameOf(change.Object)], all = d, append(all, d)
		}
		d.Changes = append(d.Changes, change)
	}
	for _, d := range all {
		d.forgetFinished()
		if err := r.addOthers(ctx, d, user); err != nil {
			return nil, err
		}
		d.order = d.Changes[0].Revision
		if d.created() {
			d.order = d.first().Revision
		}
	}
	followed, err := r.follow(ctx, all, q.Namespace)
	if err != nil {
		return nil, err
	}
	all = append(all, followed...)
	slices.SortStableFunc(all, func(a, b *Deed) int { return cmp.Compare(b.order, a.order) })
	return slices.DeleteFunc(all, func(d *Deed) bool { return d.Verb() == "nothing" }), nil
}

// addOthers looks for what others changed after the user, in the whole history since his first change.
func (r *Reverter) addOthers(ctx context.Context, d *Deed, user string) error {
	t := Target{Kind: pastKind(d.Object.Resource), Namespace: d.Object.Namespace, Name: d.Object.Name}
	q := Query{}.ToObject(t).Bound(historyv1.FieldSince, Moment{Revision: d.first().Revision})
	for change, err := range r.history.Changes(ctx, q) {
		if err != nil {
			return err
		}
		if d.noteSpan(change, user); IsStatus(change) {
			continue
		}
		if d.newest.Revision == 0 {
			d.newest = change
		}
		if !MadeBy(change.Description, user) && !isComponent(change.User) && !d.endsWith(change) {
			d.Others = append(d.Others, change)
		}
	}
	if d.Verb() != "delete" {
		return nil
	}
	within, err := r.othersWithin(ctx, d, user)
	d.Others = append(d.Others, within...)
	return err
}

// UndoDeed returns the step that undoes a deed.
func (r *Reverter) UndoDeed(ctx context.Context, d *Deed) (*Step, error) {
	kind, err := r.kinds.await(ctx, d.Object.Resource)
	if err != nil {
		return nil, err
	}
	t := Target{Kind: kind, Namespace: d.Object.Namespace, Name: d.Object.Name}
	if d.created() {
		current, err := r.current(ctx, t, nil)
		if err == nil && current == nil {
			err = fmt.Errorf("%s is gone already", t)
		}
		return &Step{Target: t, Before: current}, err
	}
	if d.ByFields() {
		if step, err := r.undoFields(ctx, t, d); step != nil || err != nil {
			return step, err
		}
	}
	v, err := r.history.At(ctx, t, Moment{Revision: d.first().Revision - 1})
	err = r.history.notKept(t, d.first().Revision, err)
	if err == nil && v == nil {
		err = r.history.notThere(ctx, t, Moment{Revision: d.first().Revision - 1})
	}
	if err != nil {
		return nil, err
	}
	return r.stepTo(ctx, t, v, d.born)
}

// stepTo returns the step to a version, whether the object is there or not.
func (r *Reverter) stepTo(ctx context.Context, t Target, v *historyv1.Version, born map[types.UID]types.UID) (*Step, error) {
	current, err := r.current(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return r.stepAnew(ctx, t, v, born)
	}
	if current.GetDeletionTimestamp() != nil {
		return nil, errDeleting(t)
	}
	old, err := Object(v)
	if err != nil {
		return nil, err
	}
	return r.stepBack(ctx, t, current, old)
}
