package past

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// At returns the version of an object at a moment, nil if there was none then.
func (h *History) At(ctx context.Context, t Target, m Moment) (*historyv1.Version, error) {
	m, err := h.fix(ctx, t, m)
	if err != nil {
		return nil, err
	}
	if m.IsNow() {
		newest, err := first(h.Versions(ctx, Query{Limit: 1}.ToObject(t)))
		if newest == nil || err != nil || newest.Action == historyv1.Deleted {
			return nil, err
		}
		return newest, nil
	}
	return first(h.Versions(ctx, Query{Limit: 1}.ToObject(t).Bound(historyv1.FieldAt, m)))
}

// MustBeAt is At for an object that has to be there.
func (h *History) MustBeAt(ctx context.Context, t Target, m Moment) (*historyv1.Version, error) {
	v, err := h.At(ctx, t, m)
	if err == nil && v == nil {
		err = h.notThere(ctx, t, m)
	}
	return v, err
}

// AddMaker adds to a version of At who has made it, which the state at a moment does not say. It stays
// unknown if that is not kept.
func (h *History) AddMaker(ctx context.Context, v *historyv1.Version) error {
	if v == nil || v.User != "" {
		return nil
	}
	q := Query{Limit: 1, Namespace: v.Object.Namespace}.With("metadata.name", v.Name)
	if v.Object.Namespace == "" {
		q = q.With(historyv1.FieldNamespace, "")
	}
	change, err := first(h.Changes(ctx, q))
	if change != nil {
		v.Description = change.Description
	}
	return err
}

// AllAt returns the versions of all objects of a kind at a moment, in the order of their keys.
func (h *History) AllAt(ctx context.Context, t Target, m Moment) (all []historyv1.Version, err error) {
	if m.Back > 0 {
		return nil, mistakef("--at ~%d counts the changes of one object: write its name too, or a time or a revision", m.Back)
	}
	if m.IsNow() {
		return nil, mistakef("--at now: for what is there now write kubectl get %s", t.Kind.Name())
	}
	for v, err := range h.Versions(ctx, Query{}.ToObject(t).Bound(historyv1.FieldAt, m)) {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Difference is what two versions of an object differ in.
type Difference struct {
	From, To *historyv1.Version // nil if the object was not there
	Lines    []string           // unified diff
}

// Compare returns the difference of an object between two moments.
func (h *History) Compare(ctx context.Context, t Target, from, to Moment, view View) (*Difference, error) {
	var d Difference
	var err error
	if d.From, err = h.At(ctx, t, from); err != nil {
		return nil, err
	}
	if d.To, err = h.At(ctx, t, to); err != nil {
		return nil, err
	}
	if d.From == nil && d.To == nil {
		return nil, h.notThere(ctx, t, from)
	}
	if err := errors.Join(h.AddMaker(ctx, d.From), h.AddMaker(ctx, d.To)); err != nil {
		return nil, err
	}
	d.Lines, err = view.CompareVersions(d.From, d.To)
	return &d, err
}

// CompareVersions is Compare of View for versions, of which one may be nil or a deletion.
func (v View) CompareVersions(old, new *historyv1.Version) ([]string, error) {
	a, err := objectOrNone(old)
	if err != nil {
		return nil, err
	}
	b, err := objectOrNone(new)
	if err != nil {
		return nil, err
	}
	return v.Compare(a, b)
}

func objectOrNone(v *historyv1.Version) (*unstructured.Unstructured, error) {
	if v == nil || v.Action == historyv1.Deleted {
		return nil, nil
	}
	return Object(v)
}
