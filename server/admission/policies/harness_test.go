package policies_test

import (
	"context"
	"os"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server/admission/policies"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/logging"
)

func TestMain(m *testing.M) {
	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
	os.Exit(m.Run())
}

// newPolicy returns a policy about creates and updates of a core resource.
func newPolicy(name, resource, expression string) *v1.ValidatingAdmissionPolicy {
	return &v1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &v1.MatchResources{ResourceRules: []v1.NamedRuleWithOperations{{RuleWithOperations: v1.RuleWithOperations{
				Operations: []v1.OperationType{v1.Create, v1.Update},
				Rule:       v1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}}}},
			Validations: []v1.Validation{{Expression: expression, Message: "refused by " + name}},
		},
	}
}

// newBinding returns a binding that denies what the policy of the same name refuses.
func newBinding(name string) *v1.ValidatingAdmissionPolicyBinding {
	return &v1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []v1.ValidationAction{v1.Deny}},
	}
}

// putPolicy stores a policy and its binding.
func putPolicy(t testing.TB, client kubernetes.Interface, policy *v1.ValidatingAdmissionPolicy, binding *v1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	r := client.AdmissionregistrationV1()
	if _, err := r.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func optionsOf(a *apitest.API) policies.Options {
	return policies.Options{Store: a.Store, Kinds: a.Kinds, Client: a.Config, Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer()}
}

// createOf describes the create of a ConfigMap to admission.
func createOf(data map[string]string) apiadmission.Attributes {
	object := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: data}
	return apiadmission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "default", "x",
		corev1.SchemeGroupVersion.WithResource("configmaps"), "", apiadmission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "ann"})
}

// interfaces are those of built-in objects. Conversions and defaults are the scheme's.
var interfaces = apiadmission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)

// inDefault makes the namespace that createOf names.
func inDefault(t testing.TB, client kubernetes.Interface) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// tryCreate creates a ConfigMap on trial and returns the error.
func tryCreate(ctx context.Context, client kubernetes.Interface, data map[string]string) error {
	_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: data},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// withParams makes the policy one with ConfigMaps as parameters, and the binding one that selects
// them by the label role.
func withParams(policy *v1.ValidatingAdmissionPolicy, binding *v1.ValidatingAdmissionPolicyBinding) {
	policy.Spec.ParamKind = &v1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	binding.Spec.ParamRef = &v1.ParamRef{
		Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{"role": "param"}},
		ParameterNotFoundAction: ptr.To(v1.DenyAction),
	}
}

func configMap(name string, labels, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data}
}
