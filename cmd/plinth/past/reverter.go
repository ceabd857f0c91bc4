package past

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Reverter changes objects back to what they were: it finds out by which steps, and plays them. It has no state of its
// own.
type Reverter struct {
	server  *server
	kinds   *Kinds
	history *History
}

// Try plays the step in a dry run, so that what admission, defaults and validation make of it is known
// before anything is changed. Where the server cannot, because of a webhook with side effects, the
// result stays what is sent.
func (r *Reverter) Try(ctx context.Context, s *Step) error {
	if s.Result = s.After; s.After == nil {
		return nil
	}
	result, err := r.write(ctx, s, true)
	if apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "dry run") {
		return nil
	}
	if err != nil {
		return err
	}
	s.Result = result
	return nil
}

// Do plays the step, and returns the object; what was deleted, if it was a deletion.
func (r *Reverter) Do(ctx context.Context, s *Step, dry bool) (*unstructured.Unstructured, error) {
	if s.After == nil {
		options := metav1.DeleteOptions{Preconditions: preconditionsOf(s.Before), DryRun: dryRunOf(dry)}
		return s.Before, r.refused(s, r.endpoint(s.Target, s.Before).Delete(ctx, s.Target.Name, options))
	}
	result, err := r.write(ctx, s, dry)
	if err == nil && !dry && s.born != nil {
		s.born[s.was] = result.GetUID()
	}
	return result, err
}

func (r *Reverter) write(ctx context.Context, s *Step, dry bool) (result *unstructured.Unstructured, err error) {
	at := r.endpoint(s.Target, s.After)
	if s.Before == nil {
		result, err = at.Create(ctx, s.After, metav1.CreateOptions{FieldManager: UndeleteManager, DryRun: dryRunOf(dry)})
	} else {
		result, err = at.Update(ctx, s.After, metav1.UpdateOptions{FieldManager: UndoManager, DryRun: dryRunOf(dry)})
	}
	return result, r.refused(s, err)
}

// refused says what an error means for the one who wanted to bring something back.
func (r *Reverter) refused(s *Step, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status):
		return r.server.unreachable(err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s was changed meanwhile, nothing was undone; try again: %w", s.Target, err)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s is there again, nothing was changed: %w", s.Target, err)
	case apierrors.IsNotFound(err) && s.Before == nil && s.Target.Namespace != "":
		return fmt.Errorf("%s cannot be created, nothing was changed: %w; plinth undelete namespaces/%s brings its namespace back, and with --cascade what was in it",
			s.Target, err, s.Target.Namespace)
	}
	return fmt.Errorf("%s: refused, nothing was changed: %w", s.Target, err)
}

// dropLostOwners removes owner references to objects that are gone, and returns them: with one of
// them the garbage collector would delete the object.
func (r *Reverter) dropLostOwners(ctx context.Context, object *unstructured.Unstructured) (lost []metav1.OwnerReference, err error) {
	var kept []metav1.OwnerReference
	for _, owner := range object.GetOwnerReferences() {
		there, err := r.isThere(ctx, object.GetNamespace(), owner)
		if err != nil {
			return nil, fmt.Errorf("look for the owner %s %s: %w", owner.Kind, owner.Name, err)
		}
		if there {
			kept = append(kept, owner)
			continue
		}
		lost = append(lost, owner)
	}
	if len(lost) == 0 {
		return nil, nil
	}
	object.SetOwnerReferences(kept)
	if len(kept) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "ownerReferences")
	}
	return lost, nil
}

// isThere tells whether the very object is there that a reference means. One that the user may not read
// counts as there.
func (r *Reverter) isThere(ctx context.Context, namespace string, owner metav1.OwnerReference) (bool, error) {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false, nil
	}
	mapping, err := r.kinds.mapper.RESTMapping(gv.WithKind(owner.Kind).GroupKind())
	if err != nil {
		return false, nil // its kind is gone
	}
	if mapping.Scope.Name() == "root" {
		namespace = ""
	}
	found, err := r.server.objects.Resource(mapping.Resource).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, r.server.unreachable(err)
	}
	return found.GetUID() == owner.UID, nil
}

// endpoint returns the way to objects of a target, in the version that an object has.
func (r *Reverter) endpoint(t Target, object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource := t.Kind.Resource
	if gv, err := schema.ParseGroupVersion(object.GetAPIVersion()); err == nil && gv.Version != "" && gv.Group == resource.Group {
		resource.Version = gv.Version
	}
	if t.Namespace == "" {
		return r.server.objects.Resource(resource)
	}
	return r.server.objects.Resource(resource).Namespace(t.Namespace)
}

// current returns the object as it is now, in the version of like; nil if it is not there.
func (r *Reverter) current(ctx context.Context, t Target, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if like == nil {
		like = &unstructured.Unstructured{Object: map[string]any{}}
	}
	object, err := r.endpoint(t, like).Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, r.server.unreachable(err)
	}
	return object, nil
}

func dryRunOf(dry bool) []string {
	if dry {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// preconditionsOf returns the preconditions that a deletion is of the object that was looked at.
func preconditionsOf(object *unstructured.Unstructured) *metav1.Preconditions {
	uid, version := types.UID(object.GetUID()), object.GetResourceVersion()
	return &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
}
