// Package deciding knows the resources whose objects decide about requests: policies, webhooks, roles, quotas and the
// like. It owns which these are, and what is checked of their stored objects besides that they are objects. It
// must not know what a server does about an object that cannot be read: that is up to whoever decides by it.
package deciding

import (
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// resource is one of these resources.
type resource struct {
	group, kind, plural string
	decode              func(value []byte) error
}

// all are the resources.
var all = []resource{
	{admissionv1.GroupName, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", into[admissionv1.ValidatingAdmissionPolicy]},
	{admissionv1.GroupName, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", into[admissionv1.ValidatingAdmissionPolicyBinding]},
	{admissionv1.GroupName, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", into[admissionv1.MutatingAdmissionPolicy]},
	{admissionv1.GroupName, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", into[admissionv1.MutatingAdmissionPolicyBinding]},
	{admissionv1.GroupName, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", into[admissionv1.ValidatingWebhookConfiguration]},
	{admissionv1.GroupName, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", into[admissionv1.MutatingWebhookConfiguration]},
	{rbacv1.GroupName, "Role", "roles", into[rbacv1.Role]},
	{rbacv1.GroupName, "RoleBinding", "rolebindings", into[rbacv1.RoleBinding]},
	{rbacv1.GroupName, "ClusterRole", "clusterroles", into[rbacv1.ClusterRole]},
	{rbacv1.GroupName, "ClusterRoleBinding", "clusterrolebindings", into[rbacv1.ClusterRoleBinding]},
	// The schemas of a definition are large, and decoded when its resource is served.
	{apiextensionsv1.GroupName, "CustomResourceDefinition", "customresourcedefinitions", definition},
	{apiregistrationv1.GroupName, "APIService", "apiservices", into[apiregistrationv1.APIService]},
	{flowcontrolv1.GroupName, "FlowSchema", "flowschemas", into[flowcontrolv1.FlowSchema]},
	{flowcontrolv1.GroupName, "PriorityLevelConfiguration", "prioritylevelconfigurations", into[flowcontrolv1.PriorityLevelConfiguration]},
	{corev1.GroupName, "ResourceQuota", "resourcequotas", into[corev1.ResourceQuota]},
	{corev1.GroupName, "LimitRange", "limitranges", into[corev1.LimitRange]},
	{policyv1.GroupName, "PodDisruptionBudget", "poddisruptionbudgets", into[policyv1.PodDisruptionBudget]},
}

var byPrefix = func() map[string]*resource {
	found := map[string]*resource{}
	for i, r := range all {
		found[object.Prefix(r.group, r.plural)] = &all[i]
	}
	return found
}()

func into[T any](value []byte) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(value, new(T))
}

func definition(value []byte) error {
	_, err := custom.Decode(value)
	return err
}

// Check is object.Check, and looks at more of an object that decides: whether it is of the kind that its key says and
// can be decoded. Nothing of the value is in the error.
func Check(key string, value []byte) error {
	if err := object.Check(key, value); err != nil {
		return err
	}
	r := byPrefix[object.ResourceOf(key)]
	if r == nil {
		return nil
	}
	var is metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &is); err != nil {
		return errors.New("its kind or apiVersion have another type")
	}
	if is.Kind != r.kind || schema.FromAPIVersionAndKind(is.APIVersion, is.Kind).Group != r.group {
		return fmt.Errorf("it is no %s of %q", r.kind, r.group)
	}
	if r.decode(value) != nil { // the error may have a part of the value
		return fmt.Errorf("it is no %s: a field has another type", r.kind)
	}
	return nil
}

// Unreadable returns the objects that decide and cannot be read.
func Unreadable(store *sqlstore.Store) (found []*sqlstore.Unreadable) {
	for _, r := range all {
		if bad := store.Unreadable(object.Prefix(r.group, r.plural)); bad != nil {
			found = append(found, bad.Objects...)
		}
	}
	return found
}

// Error says which of objects are unreadable, without their names; nil for none.
func Error(objects []*sqlstore.Unreadable) error {
	if len(objects) == 0 {
		return nil
	}
	counts, order := map[string]int{}, []string(nil)
	for _, u := range objects {
		r := byPrefix[object.ResourceOf(u.Key)]
		if counts[r.plural]++; counts[r.plural] == 1 {
			order = append(order, r.plural)
		}
	}
	for i, plural := range order {
		order[i] = fmt.Sprintf("%d of %s", counts[plural], plural)
	}
	return fmt.Errorf("objects that decide about requests cannot be read: %s; the log names them", strings.Join(order, ", "))
}
