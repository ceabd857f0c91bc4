package policies_test

import (
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
)

// MutatingAdmissionPolicies that are stored have no effect unless the feature is on.
func TestMutatingGate(t *testing.T) {
	for _, on := range []bool{false, true} {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.MutatingAdmissionPolicy, on)
		srv := server.New(server.Config{Controllers: []string{}})
		if err := srv.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		client := apitest.Typed(t, srv)
		putMutating(t, client)
		made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("x", nil, nil), metav1.CreateOptions{})
		if err != nil || (made.Data["by"] == "policy") != on {
			t.Errorf("with the feature %v: %v, %v", on, made.Data, err)
		}
	}
}

// putMutating stores a policy that adds data to ConfigMaps, and its binding.
func putMutating(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	r := client.AdmissionregistrationV1()
	_, err := r.MutatingAdmissionPolicies().Create(t.Context(), &v1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: v1.NeverReinvocationPolicy,
			MatchConstraints: &v1.MatchResources{ResourceRules: []v1.NamedRuleWithOperations{{RuleWithOperations: v1.RuleWithOperations{
				Operations: []v1.OperationType{v1.Create},
				Rule:       v1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}}}},
			Mutations: []v1.Mutation{{
				PatchType:          v1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &v1.ApplyConfiguration{Expression: `Object{data: {"by": "policy"}}`},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.MutatingAdmissionPolicyBindings().Create(t.Context(), &v1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.MutatingAdmissionPolicyBindingSpec{PolicyName: "p"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
