package controllers_test

import (
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/servertest"
)

// The status of a policy has the type errors in its expressions, for built-in types and for
// custom resources, and follows changes of the policy.
func TestPolicyStatus(t *testing.T) {
	srv := servertest.Start(t, servertest.Options{Controllers: []string{"validatingadmissionpolicy-status"}})
	client := kubernetes.NewForConfigOrDie(srv.Config)
	define(t, client)
	registered := client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	policy := &v1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1.ValidatingAdmissionPolicySpec{
			ParamKind: &v1.ParamKind{APIVersion: "example.com/v1", Kind: "Limit"},
			MatchConstraints: &v1.MatchResources{ResourceRules: []v1.NamedRuleWithOperations{{RuleWithOperations: v1.RuleWithOperations{
				Operations: []v1.OperationType{v1.Create},
				Rule:       v1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}}}},
			Validations: []v1.Validation{
				{Expression: "object.spec.replicas <= params.spec.most"},
				{Expression: "object.spec.replcas <= 1"},
				{Expression: "object.spec.replicas <= params.spec.least", MessageExpression: "string(object.spec.nothing)"},
			},
		},
	}
	policy, err := registered.Create(t.Context(), policy, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(fields ...string) {
		t.Helper()
		apitest.Eventually(t, "type errors in "+strings.Join(fields, ", "), func() bool {
			policy, err = registered.Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return policy.Status.ObservedGeneration == policy.Generation
		})
		var got []string
		for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
			got = append(got, w.FieldRef)
			if !strings.Contains(w.Warning, "undefined field") {
				t.Errorf("%s: %s", w.FieldRef, w.Warning)
			}
		}
		if strings.Join(got, " ") != strings.Join(fields, " ") {
			t.Errorf("type errors in %v, want %v", got, fields)
		}
	}
	expect("spec.validations[1].expression", "spec.validations[2].expression", "spec.validations[2].messageExpression")
	policy.Spec.Validations = policy.Spec.Validations[:2]
	if policy, err = registered.Update(t.Context(), policy, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("spec.validations[1].expression")
}

// define makes the custom resource limits.example.com, and returns when it is served.
func define(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"limits.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"limits","singular":"limit","kind":"Limit","listKind":"LimitList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","properties":{"most":{"type":"integer"}}}}}}}]}}`
	rest := client.Discovery().RESTClient()
	if err := rest.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Body([]byte(crd)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "limits are served", func() bool {
		return rest.Get().AbsPath("/apis/example.com/v1/limits").Do(t.Context()).Error() == nil
	})
}

// TestPolicyStatusTogether has policies about many types checked at once. The types share definitions, as all kinds of
// workloads do that of a pod.
func TestPolicyStatusTogether(t *testing.T) {
	srv := servertest.Start(t, servertest.Options{Controllers: []string{"validatingadmissionpolicy-status"}})
	registered := kubernetes.NewForConfigOrDie(srv.Config).AdmissionregistrationV1().ValidatingAdmissionPolicies()
	types := map[string][]string{
		"apps":  {"deployments", "daemonsets", "statefulsets", "replicasets", "controllerrevisions"},
		"batch": {"jobs", "cronjobs"},
		"":      {"pods", "replicationcontrollers", "podtemplates", "services", "nodes", "persistentvolumeclaims"},
	}
	var wg sync.WaitGroup
	for group, resources := range types {
		for _, resource := range resources {
			wg.Go(func() {
				_, err := registered.Create(t.Context(), &v1.ValidatingAdmissionPolicy{
					ObjectMeta: metav1.ObjectMeta{Name: resource},
					Spec: v1.ValidatingAdmissionPolicySpec{
						MatchConstraints: &v1.MatchResources{ResourceRules: []v1.NamedRuleWithOperations{{RuleWithOperations: v1.RuleWithOperations{
							Operations: []v1.OperationType{v1.Create},
							Rule:       v1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
						}}}},
						Validations: []v1.Validation{{Expression: "object.metadata.nothing == 1"}},
					},
				}, metav1.CreateOptions{})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	apitest.Eventually(t, "each policy's status has its error", func() bool {
		all, err := registered.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all.Items {
			if p.Status.TypeChecking == nil || len(p.Status.TypeChecking.ExpressionWarnings) != 1 {
				return false
			}
		}
		return len(all.Items) == 13
	})
}
