package past

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Trash returns the deletions of objects that are not there any more, the newest first.
func (c *Client) Trash(ctx context.Context, q Query) iter.Seq2[historyv1.Change, error] {
	type name struct{ resource, namespace, name string }
	return func(yield func(historyv1.Change, error) bool) {
		seen := map[name]bool{}
		limit := q.Limit
		q.Limit = 0 // of deletions, not of changes
		for change, err := range c.Changes(ctx, q.Without(historyv1.FieldAction, string(historyv1.Changed))) {
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
func (c *Client) Undelete(ctx context.Context, t Target, at Moment) (*Step, error) {
	there, err := c.current(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	if there != nil {
		return nil, fmt.Errorf("%s is there; plinth undo %s --to REVISION gives it an older state", t, t.words())
	}
	v, err := c.deleted(ctx, t, at)
	if err != nil {
		return nil, err
	}
	return c.stepAnew(ctx, t, v, nil)
}

// UndeleteAll returns the deeds that create a deleted object again, and after it what Kubernetes' own
// components deleted because of it: what was in a namespace, the objects of a definition, and what it owned,
// without what a controller makes again.
func (c *Client) UndeleteAll(ctx context.Context, t Target) ([]*Deed, error) {
	there, err := c.current(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	if there != nil {
		return nil, fmt.Errorf("%s is there; plinth undo %s --to REVISION gives it an older state", t, t.words())
	}
	if _, err := c.deleted(ctx, t, Moment{}); err != nil {
		return nil, err
	}
	d, err := c.deletion(ctx, t)
	if err != nil {
		return nil, err
	}
	followed, err := c.follow(ctx, []*Deed{d}, t.Namespace)
	return append([]*Deed{d}, followed...), err
}

// deletion returns the deed that deleted an object, which began with the request for that. Where the object
// had finalizers, others have ended it.
func (c *Client) deletion(ctx context.Context, t Target) (*Deed, error) {
	d := &Deed{}
	for change, err := range c.Changes(ctx, Query{}.ToObject(t)) {
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

func (c *Client) deleted(ctx context.Context, t Target, at Moment) (*historyv1.Version, error) {
	if !at.IsNow() {
		return c.MustBeAt(ctx, t, at)
	}
	v, err := first(c.Versions(ctx, Query{Limit: 1}.ToObject(t).With(historyv1.FieldAction, string(historyv1.Deleted))))
	if err == nil && v == nil {
		if err := c.mayGet(ctx, t); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s is not there, and no deletion of it is kept; plinth trash %s%s lists what can be brought back%s", t, t.Kind.Name(), t.flag(), c.because())
	}
	return v, err
}

// stepAnew returns the step that creates the object of a version again. born has the new uids of owners
// that were created again before it, and gets the object's.
func (c *Client) stepAnew(ctx context.Context, t Target, v *historyv1.Version, born map[types.UID]types.UID) (*Step, error) {
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
	if _, has := s.After.Object["status"]; has && c.hasStatus(t.Kind) {
		s.Status = true
		delete(s.After.Object, "status")
	}
	s.Lost, err = c.dropLostOwners(ctx, s.After)
	s.Result = s.After
	return s, err
}

// Forget removes all versions of an object but the newest for good.
func (c *Client) Forget(ctx context.Context, t Target) (message string, err error) {
	q := Query{}.ToObject(t)
	text, err := read(c.rest.Delete().AbsPath(q.path(versions)...).Param("fieldSelector", q.selector()).Do(ctx))
	if err != nil {
		return "", c.explain(err)
	}
	return statusMessage(text)
}

func statusMessage(text []byte) (string, error) {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return "", fmt.Errorf("the answer is no Status: %w", err)
	}
	return status.Message, nil
}
