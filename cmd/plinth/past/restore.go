package past

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// Manager of the fields that undo and undelete write.
const (
	undoManager     = "plinth-undo"
	undeleteManager = "plinth-undelete"
)

// overwriting returns the object that makes current what old was.
//
// What says which object it is and how it ends stays: uid, time of creation, deletion, and finalizers,
// which are the promise of controllers to clean up after what is there now. The resourceVersion is that
// of current, so that a change that comes between is noticed. Managed fields are the server's.
func overwriting(current, old *unstructured.Unstructured) *unstructured.Unstructured {
	out := old.DeepCopy()
	forgetServerFields(out)
	out.SetResourceVersion(current.GetResourceVersion())
	out.SetUID(current.GetUID())
	out.SetCreationTimestamp(current.GetCreationTimestamp())
	out.SetFinalizers(slices.Clone(current.GetFinalizers()))
	if isAccountToken(out) {
		forgetToken(out)
		takeToken(out, current)
	}
	return out
}

// anew returns the object that creates again what old was.
func anew(old *unstructured.Unstructured) *unstructured.Unstructured {
	out := old.DeepCopy()
	forgetServerFields(out)
	out.SetFinalizers(slices.DeleteFunc(out.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents // of its deletion
	}))
	if len(out.GetFinalizers()) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "finalizers")
	}
	forgetGenerated(out)
	if isAccountToken(out) {
		forgetToken(out)
	}
	return out
}

// isAccountToken tells whether an object is a Secret with the token of a service account.
func isAccountToken(object *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(object.Object, "type")
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"} && kind == string(corev1.SecretTypeServiceAccountToken)
}

// tokenFields are what the controller and the server write to such a Secret.
var tokenFields = [][]string{
	{"data", corev1.ServiceAccountTokenKey}, {"data", corev1.ServiceAccountRootCAKey}, {"data", corev1.ServiceAccountNamespaceKey},
	{"metadata", "annotations", corev1.ServiceAccountUIDKey},
	{"metadata", "labels", serviceaccount.LastUsedLabelKey}, {"metadata", "labels", serviceaccount.InvalidSinceLabelKey},
}

// forgetToken removes the token, of which the controller makes a new one then. A token is good as long as a
// Secret has it: whoever deleted or changed the Secret has taken it back, and with the same text it would be
// good again, for everybody who has seen it.
func forgetToken(secret *unstructured.Unstructured) {
	unstructured.RemoveNestedField(secret.Object, "immutable") // the controller has to write to it
	for _, field := range tokenFields {
		unstructured.RemoveNestedField(secret.Object, field...)
		if left, found, _ := unstructured.NestedMap(secret.Object, field[:len(field)-1]...); found && len(left) == 0 {
			unstructured.RemoveNestedField(secret.Object, field[:len(field)-1]...)
		}
	}
}

// hasFixedToken tells whether the token of a Secret is signed with RSA: then every Secret of its name gets the
// same one, because nothing in it is random and it has no time.
func hasFixedToken(secret *unstructured.Unstructured) bool {
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", corev1.ServiceAccountTokenKey)
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(token), ".")
	text, err := base64.RawURLEncoding.DecodeString(first)
	var header struct{ Alg string }
	return err == nil && json.Unmarshal(text, &header) == nil && strings.HasPrefix(header.Alg, "RS")
}

// takeToken gives a Secret the token that another has.
func takeToken(secret, from *unstructured.Unstructured) {
	for _, field := range tokenFields {
		if value, found, _ := unstructured.NestedString(from.Object, field...); found {
			_ = unstructured.SetNestedField(secret.Object, value, field...)
		}
	}
}

// forgetServerFields removes what only the server writes.
func forgetServerFields(object *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
}

// forgetGenerated removes the selector of a Job that the server made from the uid, and makes again.
func forgetGenerated(object *unstructured.Unstructured) {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return
	}
	if manual, _, _ := unstructured.NestedBool(object.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(object.Object, "spec", "selector")
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", "labels", label)
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels", label)
	}
}

// dropLostOwners removes owner references to objects that are gone, and returns them: with one of
// them the garbage collector would delete the object.
func (c *Client) dropLostOwners(ctx context.Context, object *unstructured.Unstructured) (lost []metav1.OwnerReference, err error) {
	var kept []metav1.OwnerReference
	for _, owner := range object.GetOwnerReferences() {
		there, err := c.isThere(ctx, object.GetNamespace(), owner)
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
func (c *Client) isThere(ctx context.Context, namespace string, owner metav1.OwnerReference) (bool, error) {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false, nil
	}
	mapping, err := c.mapper.RESTMapping(gv.WithKind(owner.Kind).GroupKind())
	if err != nil {
		return false, nil // its kind is gone
	}
	if mapping.Scope.Name() == "root" {
		namespace = ""
	}
	found, err := c.objects.Resource(mapping.Resource).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, c.unreachable(err)
	}
	return found.GetUID() == owner.UID, nil
}

// endpoint returns the way to objects of a target, in the version that an object has.
func (c *Client) endpoint(t Target, object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource := t.Kind.Resource
	if gv, err := schema.ParseGroupVersion(object.GetAPIVersion()); err == nil && gv.Version != "" && gv.Group == resource.Group {
		resource.Version = gv.Version
	}
	if t.Namespace == "" {
		return c.objects.Resource(resource)
	}
	return c.objects.Resource(resource).Namespace(t.Namespace)
}

// current returns the object as it is now, in the version of like; nil if it is not there.
func (c *Client) current(ctx context.Context, t Target, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if like == nil {
		like = &unstructured.Unstructured{Object: map[string]any{}}
	}
	object, err := c.endpoint(t, like).Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.unreachable(err)
	}
	return object, nil
}

func dryRunOf(dry bool) []string {
	if dry {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// uidOf returns the precondition that a deletion is of the object that was looked at.
func preconditionsOf(object *unstructured.Unstructured) *metav1.Preconditions {
	uid, version := types.UID(object.GetUID()), object.GetResourceVersion()
	return &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
}
