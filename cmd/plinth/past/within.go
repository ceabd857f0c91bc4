package past

import (
	"context"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

const (
	namespaceResource  = "namespaces"
	definitionResource = "customresourcedefinitions.apiextensions.k8s.io"
	eventResource      = "events" // which nobody would miss
)

// queryWithin returns the query for the objects that are deleted with one, because it is their namespace
// or their definition.
func queryWithin(resource, name string) (Query, bool) {
	switch resource {
	case namespaceResource:
		return Query{Namespace: name}, true
	case definitionResource:
		return Query{}.With(historyv1.FieldResource, name), true
	}
	return Query{}, false
}

// Within returns the objects in a namespace or of a definition, which are deleted with it; none of
// another object.
func (h *History) Within(ctx context.Context, t Target) (all []historyv1.ObjectReference, err error) {
	q, ok := queryWithin(t.Kind.Name(), t.Name)
	if !ok {
		return nil, nil
	}
	newest, err := h.page(ctx, changes, Query{Limit: 1}, 1, "")
	if err != nil {
		return nil, err
	}
	for v, err := range h.Versions(ctx, q.With(historyv1.FieldAt, newest.ResourceVersion)) {
		if err != nil {
			return nil, err
		}
		if v.Object.Resource != eventResource {
			all = append(all, v.Object)
		}
	}
	return all, nil
}

// othersWithin returns the newest change by somebody else of each object that would be deleted with
// what a user has created. An object whose creation is not kept counts as somebody else's.
func (r *Reverter) othersWithin(ctx context.Context, d *Deed, user string) (others []historyv1.Change, err error) {
	q, ok := queryWithin(d.Object.Resource, d.Object.Name)
	if !ok {
		return nil, nil
	}
	type seen struct {
		newest  historyv1.Change
		decided bool
	}
	byName := map[objectName]*seen{}
	var order []*seen
	for change, err := range r.history.Changes(ctx, q.Bound(historyv1.FieldSince, Moment{Revision: d.first().Revision})) {
		if err != nil {
			return nil, err
		}
		o := byName[nameOf(change.Object)]
		if o == nil {
			o = &seen{newest: change, decided: change.Action == historyv1.Deleted || change.Object.Resource == eventResource}
			byName[nameOf(change.Object)], order = o, append(order, o)
		}
		if o.decided || change.Object.CreateRevision != o.newest.Object.CreateRevision {
			continue
		}
		switch {
		case !MadeBy(change.Description, user) && !isComponent(change.User) && change.Subresource != "status":
			o.decided = true
			others = append(others, change)
		case change.Action == historyv1.Created:
			o.decided = true
		}
	}
	for _, o := range order {
		if !o.decided {
			others = append(others, o.newest)
		}
	}
	return others, nil
}
