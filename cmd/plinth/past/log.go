package past

import (
	"context"
	"iter"
	"slices"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ByUser returns the changes that a user made, also under another name, and those that were made
// under his name, the newest first.
func (h *History) ByUser(ctx context.Context, q Query, user string) iter.Seq2[historyv1.Change, error] {
	own := h.Changes(ctx, q.With(historyv1.FieldUser, user))
	asked := h.Changes(ctx, q.With(historyv1.FieldImpersonator, user))
	return Limited(merged(own, asked), q.Limit)
}

// IsStatus tells whether a change is of a status alone, which controllers make and make again. A write of
// the status that ended a deletion is more than that.
func IsStatus(change historyv1.Change) bool {
	return change.Subresource == "status" && change.Action != historyv1.Deleted
}

// WithoutStatus leaves out changes of a status alone.
func WithoutStatus(all iter.Seq2[historyv1.Change, error]) iter.Seq2[historyv1.Change, error] {
	return func(yield func(historyv1.Change, error) bool) {
		for change, err := range all {
			if err == nil && IsStatus(change) {
				continue
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// merged merges two sequences of changes, the newest first, and leaves out what is in both.
func merged(a, b iter.Seq2[historyv1.Change, error]) iter.Seq2[historyv1.Change, error] {
	return func(yield func(historyv1.Change, error) bool) {
		nextB, stop := iter.Pull2(b)
		defer stop()
		heldB, err, more := nextB()
		flush := func(above int64) bool { // yields what b has above a revision
			for more && (err != nil || heldB.Revision > above) {
				if !yield(heldB, err) || err != nil {
					return false
				}
				heldB, err, more = nextB()
			}
			return true
		}
		for change, errA := range a {
			if errA != nil {
				yield(change, errA)
				return
			}
			if !flush(change.Revision) {
				return
			}
			if more && err == nil && heldB.Revision == change.Revision {
				heldB, err, more = nextB()
			}
			if !yield(change, nil) {
				return
			}
		}
		flush(0)
	}
}

// Limited returns the first of a sequence, at most limit; 0: all.
func Limited[T any](all iter.Seq2[T, error], limit int) iter.Seq2[T, error] {
	if limit == 0 {
		return all
	}
	return func(yield func(T, error) bool) {
		left := limit
		for item, err := range all {
			if left--; !yield(item, err) || left == 0 {
				return
			}
		}
	}
}

// Entry is a change with its diff.
type Entry struct {
	Change  historyv1.Change
	Diff    []string
	Missing bool // the version before is not kept, so there is no diff
}

// WithDiffs adds the diff to each change. An object before a change is mostly the one after the next
// change of the sequence, so it is kept until then.
func (h *History) WithDiffs(ctx context.Context, all iter.Seq2[historyv1.Change, error], view View) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		before := map[historyv1.ObjectReference]*historyv1.Version{}
		for change, err := range all {
			e := Entry{Change: change}
			if err == nil {
				err = h.addDiff(ctx, &e, before, view)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// addDiff compares the object after a change with that before.
func (h *History) addDiff(ctx context.Context, e *Entry, before map[historyv1.ObjectReference]*historyv1.Version, view View) error {
	d := e.Change.Description
	t := Target{Kind: pastKind(d.Object.Resource), Namespace: d.Object.Namespace, Name: d.Object.Name}
	var old, new *historyv1.Version
	var err error
	if new = before[d.Object]; new == nil || new.Revision != d.Revision {
		new, err = h.At(ctx, t, Moment{Revision: d.Revision}) // nothing after a deletion
	}
	delete(before, d.Object)
	if err == nil && d.Action != historyv1.Created {
		old, err = h.At(ctx, t, Moment{Revision: d.Revision - 1})
	}
	if apierrors.IsResourceExpired(err) {
		e.Missing = true
		return nil
	}
	if err != nil {
		return err
	}
	if old != nil {
		before[d.Object] = old
	}
	e.Diff, err = view.CompareVersions(old, new)
	return err
}

// Oldest returns the last changes of a sequence in the order in which they were made.
func Oldest(all iter.Seq2[historyv1.Change, error]) ([]historyv1.Change, error) {
	var out []historyv1.Change
	for change, err := range all {
		if err != nil {
			return nil, err
		}
		out = append(out, change)
	}
	slices.Reverse(out)
	return out, nil
}
