package past

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// UndoManager and UndeleteManager are the managers of the fields that undo and undelete write.
const (
	UndoManager     = "plinth-undo"
	UndeleteManager = "plinth-undelete"
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
