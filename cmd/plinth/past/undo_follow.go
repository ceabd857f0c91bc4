package past

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// collectors are the users as whom the garbage collector deletes.
var collectors = []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"}

// followers looks for what Kubernetes' own components deleted because of what a user deleted.
type followers struct {
	h     *History
	deeds map[objectName]*Deed // the user's own, and what was found
	uids  map[types.UID]*Deed  // of deleted objects
	found []*Deed
	born  map[types.UID]types.UID // shared by all deeds
}

// follower is an object that was deleted because of a deed.
type follower struct {
	change historyv1.Change
	uid    types.UID
	owners []metav1.OwnerReference
}

// follow returns the deeds that bring back what was in namespaces and of definitions that the user
// deleted, and what the garbage collector deleted because its owner was gone. What a controller owns is
// left to it. Each comes after the one that it needs.
func (r *Reverter) follow(ctx context.Context, all []*Deed, namespace string) ([]*Deed, error) {
	f := &followers{h: r.history, deeds: map[objectName]*Deed{}, uids: map[types.UID]*Deed{}, born: map[types.UID]types.UID{}}
	var lost []*Deed
	for _, d := range all {
		d.born = f.born
		f.deeds[nameOf(d.Object)] = d
		if d.Verb() == "create" && len(d.Others) == 0 {
			lost = append(lost, d)
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	for _, d := range lost {
		if err := f.addWithin(ctx, d); err != nil {
			return nil, err
		}
	}
	err := f.addOwned(ctx, lost, namespace)
	slices.SortFunc(f.found, func(a, b *Deed) int { return cmp.Compare(a.Object.CreateRevision, b.Object.CreateRevision) })
	return f.found, err
}

// addWithin adds what was in a namespace or of a definition when it was deleted.
func (f *followers) addWithin(ctx context.Context, d *Deed) error {
	q, ok := queryWithin(d.Object.Resource, d.Object.Name)
	if !ok {
		return nil
	}
	q = q.Bound(historyv1.FieldSince, Moment{Revision: d.Changes[0].Revision}).Bound(historyv1.FieldUntil, Moment{Revision: d.newest.Revision})
	all, err := f.deleted(ctx, q)
	for _, o := range all {
		made := o.change.Object.Resource == eventResource || o.change.Object.Resource == "configmaps" && o.change.Object.Name == "kube-root-ca.crt"
		if !made && isComponent(o.change.User) {
			f.add(o, d)
		}
	}
	return err
}

// addOwned adds what the garbage collector deleted after its owner, and what that owned.
func (f *followers) addOwned(ctx context.Context, lost []*Deed, namespace string) error {
	since := slices.MinFunc(lost, func(a, b *Deed) int { return cmp.Compare(a.Changes[0].Revision, b.Changes[0].Revision) })
	var all []follower
	for _, user := range collectors {
		q := Query{Namespace: namespace}.With(historyv1.FieldUser, user).Bound(historyv1.FieldSince, Moment{Revision: since.Changes[0].Revision})
		some, err := f.deleted(ctx, q)
		if err != nil {
			return err
		}
		all = append(all, slices.DeleteFunc(some, func(o follower) bool { return len(o.owners) == 0 })...)
	}
	if len(all) == 0 {
		return nil
	}
	for _, d := range lost {
		if err := f.noteUID(ctx, d); err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(a, b follower) int {
		return cmp.Compare(a.change.Object.CreateRevision, b.change.Object.CreateRevision)
	})
	for _, o := range all { // owners are older than what they own
		for _, owner := range o.owners {
			if d := f.uids[owner.UID]; d != nil && d.Changes[0].Revision < o.change.Revision {
				f.add(o, d)
				break
			}
		}
	}
	return nil
}

// noteUID looks up the uid of what the user deleted.
func (f *followers) noteUID(ctx context.Context, d *Deed) error {
	t := Target{Kind: pastKind(d.Object.Resource), Namespace: d.Object.Namespace, Name: d.Object.Name}
	v, err := first(f.h.Versions(ctx, Query{Limit: 1}.ToObject(t).With(historyv1.FieldAction, string(historyv1.Deleted))))
	if err != nil || v == nil {
		return err
	}
	if object, err := Object(v); err == nil {
		f.uids[object.GetUID()] = d
	}
	return nil
}

// deleted returns deleted objects that no controller makes again.
func (f *followers) deleted(ctx context.Context, q Query) (all []follower, err error) {
	for v, err := range f.h.Versions(ctx, q.With(historyv1.FieldAction, string(historyv1.Deleted))) {
		if err != nil {
			return nil, err
		}
		object, err := Object(&v)
		if err != nil || metav1.GetControllerOf(object) != nil {
			continue
		}
		all = append(all, follower{historyv1.Change{ObjectMeta: v.ObjectMeta, Description: v.Description}, object.GetUID(), object.GetOwnerReferences()})
	}
	return all, nil
}

// add adds an object that was deleted because of a deed, unless the user had to do with it, too.
func (f *followers) add(o follower, because *Deed) {
	if f.deeds[nameOf(o.change.Object)] != nil {
		return
	}
	d := &Deed{Object: o.change.Object, Changes: []historyv1.Change{o.change}, Because: because, newest: o.change, order: because.order, born: f.born}
	f.deeds[nameOf(d.Object)], f.uids[o.uid] = d, d
	f.found = append(f.found, d)
}

// renameOwners gives owner references the uid of the object that took the place of the owner.
func renameOwners(owners []metav1.OwnerReference, born map[types.UID]types.UID) {
	for i := range owners {
		owners[i].UID = cmp.Or(born[owners[i].UID], owners[i].UID)
	}
}
