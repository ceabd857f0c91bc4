package past

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// FollowUser is Follow for the changes that a user made, also under another name, and those that were
// made under his name.
func (h *History) FollowUser(ctx context.Context, q Query, user, after string, show func(raw *unstructured.Unstructured, change historyv1.Change) error) error {
	return h.Follow(ctx, q, after, func(raw *unstructured.Unstructured, change historyv1.Change) error {
		if !MadeBy(change.Description, user) {
			return nil
		}
		return show(raw, change)
	})
}

// Follow calls show with each change that is made after a resourceVersion, until ctx ends. A watch that
// breaks off is taken up where it was.
func (h *History) Follow(ctx context.Context, q Query, after string, show func(raw *unstructured.Unstructured, change historyv1.Change) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, after, &changeWatcher{h, q, fail})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch object := event.Object.(type) {
		case *unstructured.Unstructured:
			if event.Type == watch.Bookmark {
				continue
			}
			var change historyv1.Change
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &change); err != nil {
				return fmt.Errorf("read a change: %w", err)
			}
			if err := show(object, change); err != nil {
				return err
			}
		default:
			return h.explain(apierrors.FromObject(object))
		}
	}
	return context.Cause(ctx)
}

// changeWatcher opens the watches of Follow.
type changeWatcher struct {
	h    *History
	q    Query
	fail context.CancelCauseFunc // for errors that another attempt would get too
}

// WatchWithContext begins a watch.
func (w *changeWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = w.q.selector()
	found, err := w.h.server.objects.Resource(historyv1.GroupVersion.WithResource(changes)).Namespace(w.q.Namespace).Watch(ctx, options)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsResourceExpired(err) {
		w.fail(w.h.explain(err))
	}
	return found, err
}

// Newest returns the newest changes, the oldest of them first, and the resourceVersion to follow from.
func (h *History) Newest(ctx context.Context, q Query) ([]historyv1.Change, string, error) {
	p, err := h.page(ctx, changes, q, q.Limit, "")
	if err != nil {
		return nil, "", err
	}
	all, err := Oldest(items[historyv1.Change](onePage(p)))
	return all, p.ResourceVersion, err
}

// NewestOf is Newest for the changes that FollowUser goes on with.
func (h *History) NewestOf(ctx context.Context, q Query, user string) ([]historyv1.Change, string, error) {
	p, err := h.page(ctx, changes, q, 1, "")
	if err != nil {
		return nil, "", err
	}
	all, err := Oldest(h.ByUser(ctx, q.With(historyv1.FieldUntil, p.ResourceVersion), user))
	return all, p.ResourceVersion, err
}

func onePage(p *page) func(func(*page, error) bool) {
	return func(yield func(*page, error) bool) { yield(p, nil) }
}
