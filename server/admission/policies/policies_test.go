package policies_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/admission/policies"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/servertest"
)

func start(t *testing.T, dsn string) kubernetes.Interface {
	t.Helper()
	return clientOf(servertest.Start(t, servertest.Options{DSN: dsn}))
}

func clientOf(srv *servertest.Server) kubernetes.Interface {
	srv.Config.QPS = -1
	return kubernetes.NewForConfigOrDie(srv.Config)
}

// refused tells whether an error is the refusal by a policy. Other errors fail the test.
func refused(t *testing.T, err error, by string) bool {
	t.Helper()
	if err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "refused by "+by)) {
		t.Errorf("got %v", err)
	}
	return err != nil
}

// A policy counts from the first write after the acknowledgement of whatever puts it in force,
// changes it or takes it out of force, while other writes run.
func TestAtOnce(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		client := start(t, d.Fresh(t))
		r := client.AdmissionregistrationV1()
		if _, err := r.ValidatingAdmissionPolicies().Create(t.Context(), newPolicy("p", "configmaps", "object.data.v != '0'"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		stop := writing(t, client)
		defer stop()
		for i := range 10 {
			change := fmt.Sprintf(`[{"op":"replace","path":"/spec/validations/0/expression","value":"object.data.v != '%d'"}]`, i)
			if _, err := r.ValidatingAdmissionPolicies().Patch(t.Context(), "p", types.JSONPatchType, []byte(change), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			expect := func(what string, v int, want bool) {
				t.Helper()
				err := tryCreate(t.Context(), client, map[string]string{"v": fmt.Sprint(v)})
				if got := refused(t, err, "p"); got != want {
					t.Errorf("round %d, %s: refused %v, want %v", i, what, got, want)
				}
			}
			expect("without a binding", i, false)
			if _, err := r.ValidatingAdmissionPolicyBindings().Create(t.Context(), newBinding("p"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("with a binding", i, true)
			expect("another value", i+1, false)
			change = fmt.Sprintf(`[{"op":"replace","path":"/spec/validations/0/expression","value":"object.data.v != '%d'"}]`, i+1)
			if _, err := r.ValidatingAdmissionPolicies().Patch(t.Context(), "p", types.JSONPatchType, []byte(change), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("after a change", i, false)
			expect("another value after a change", i+1, true)
			if err := r.ValidatingAdmissionPolicyBindings().Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("after the binding", i+1, false)
		}
	})
}

// writing creates ConfigMaps that no policy refuses until stop is called.
func writing(t *testing.T, client kubernetes.Interface) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, err := client.CoreV1().ConfigMaps("default").Create(ctx, configMap(fmt.Sprintf("w-%d-%d", i, n), nil, map[string]string{"v": "fine"}), metav1.CreateOptions{})
				if err != nil && ctx.Err() == nil {
					t.Errorf("a write beside: %v", err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// A client that has read a policy from another server than the one that it was written to is
// refused there from then on.
func TestReplicas(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		here, there := start(t, dsn), start(t, dsn)
		for i := range 10 {
			name := fmt.Sprint("p", i)
			putPolicy(t, here, newPolicy(name, "configmaps", fmt.Sprintf("object.data.v != '%d'", i)), newBinding(name))
			if _, err := there.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := tryCreate(t.Context(), there, map[string]string{"v": fmt.Sprint(i)}); !refused(t, err, name) {
				t.Errorf("policy %d is not in force on the other server", i)
			}
		}
	})
}

// Parameters count at once, too: those that come, change, lose the label that selects them, go.
func TestParams(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		client := start(t, d.Fresh(t))
		policy, binding := newPolicy("p", "configmaps", "params == null || object.data.v != params.data.v"), newBinding("p")
		policy.Spec.MatchConstraints.ResourceRules[0].ResourceNames = []string{"x"}
		withParams(policy, binding)
		putPolicy(t, client, policy, binding)
		role := map[string]string{"role": "param"}
		maps := client.CoreV1().ConfigMaps("default")
		for i := range 10 {
			v := map[string]string{"v": fmt.Sprint(i)}
			if err := tryCreate(t.Context(), client, v); err == nil || !strings.Contains(err.Error(), "no params found for policy binding with `Deny` parameterNotFoundAction") {
				t.Errorf("without parameters: %v", err)
			}
			for _, name := range []string{"a", "b"} {
				if _, err := maps.Create(t.Context(), configMap(name, role, map[string]string{"v": "other"}), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if refused(t, tryCreate(t.Context(), client, v), "p") {
				t.Error("refused by other parameters")
			}
			if _, err := maps.Update(t.Context(), configMap("b", role, v), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if !refused(t, tryCreate(t.Context(), client, v), "p") {
				t.Error("a changed parameter does not count")
			}
			if _, err := maps.Update(t.Context(), configMap("b", nil, v), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if refused(t, tryCreate(t.Context(), client, v), "p") {
				t.Error("refused by a parameter that is not selected any more")
			}
			for _, name := range []string{"a", "b"} {
				if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// costly needs more than any budget: there are 2,000 characters to try in each loop.
const costly = "object.data.v.split('').all(a, object.data.v.split('').all(b, object.data.v.split('').all(c, a + b + c != 'y')))"

// An expression that costs too much is an error after a bounded time, and other writes go on
// meanwhile. Many of them end with the time of the request.
func TestCostly(t *testing.T) {
	srv := server.New(server.Config{Controllers: []string{}, RequestTimeout: time.Hour})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	config := srv.RESTConfig()
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	putPolicy(t, client, newPolicy("p", "configmaps", costly), newBinding("p"))
	begun := time.Now()
	err := tryCreate(t.Context(), client, map[string]string{"v": strings.Repeat("x", 2000)})
	if err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("got %v", err)
	}
	one := time.Since(begun)
	if one > 5*time.Minute {
		t.Errorf("one expression took %v", one)
	}
	for i := range 50 {
		name := fmt.Sprint("p", i)
		putPolicy(t, client, newPolicy(name, "configmaps", costly), newBinding(name))
	}
	begun = time.Now()
	err = client.CoreV1().RESTClient().Post().Namespace("default").Resource("configmaps").Timeout(2 * time.Second).
		Body(configMap("x", nil, map[string]string{"v": strings.Repeat("x", 2000)})).Do(t.Context()).Error()
	if err == nil {
		t.Error("admitted")
	}
	if took := time.Since(begun); took > 20*time.Second+5*one {
		t.Errorf("50 expressions took %v of a request's 2 seconds, one %v: %v", took, one, err)
	}
}

func newValidating(t testing.TB, a *apitest.API) apiadmission.ValidationInterface {
	t.Helper()
	p, err := policies.NewValidating(optionsOf(a))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Nothing is built for policies that no binding puts in force, or that are about other
// resources.
func TestUnused(t *testing.T) {
	a := apitest.Open(t)
	inDefault(t, a.Client)
	p := newValidating(t, a)
	ask := func() {
		t.Helper()
		if err := p.Validate(t.Context(), createOf(nil), interfaces); err != nil {
			t.Error(err)
		}
	}
	ask()
	if _, err := a.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), newPolicy("p", "configmaps", "false"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if ask(); policies.Built(p) {
		t.Error("built without a binding")
	}
	putPolicy(t, a.Client, newPolicy("other", "secrets", "false"), newBinding("other"))
	if ask(); policies.CompiledCount(p) != 0 {
		t.Error("a policy about another resource was compiled")
	}
	putPolicy(t, a.Client, newPolicy("true", "configmaps", "true"), newBinding("true"))
	if ask(); policies.CompiledCount(p) != 1 {
		t.Error("a policy was not compiled once")
	}
}

// Of 200 policies each has its say, the first by its name in the answer, and a policy that is
// changed does not have the others compiled again.
func TestMany(t *testing.T) {
	a := apitest.Open(t)
	inDefault(t, a.Client)
	p := newValidating(t, a)
	for i := range 200 {
		name := fmt.Sprintf("p%03d", i)
		putPolicy(t, a.Client, newPolicy(name, "configmaps", fmt.Sprintf("int(object.data.v) < %d", 1000-i)), newBinding(name))
	}
	try := func(v int) error {
		return p.Validate(t.Context(), createOf(map[string]string{"v": fmt.Sprint(v)}), interfaces)
	}
	if err := try(800); err != nil {
		t.Error(err)
	}
	for v, first := range map[int]string{801: "p199", 802: "p198", 2000: "p000"} {
		if err := try(v); err == nil || !strings.Contains(err.Error(), "refused by "+first) {
			t.Errorf("%d: %v, want a refusal by %s", v, err, first)
		}
	}
	change := []byte(`[{"op":"replace","path":"/spec/validations/0/expression","value":"true"}]`)
	if _, err := a.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Patch(t.Context(), "p199", types.JSONPatchType, change, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := apiadmission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind("Secret"), "default", "x",
		corev1.SchemeGroupVersion.WithResource("secrets"), "", apiadmission.Create, nil, false, nil)
	if err := p.Validate(t.Context(), secret, interfaces); err != nil { // learns of the change
		t.Error(err)
	}
	if n := policies.CompiledCount(p); n != 199 {
		t.Errorf("%d policies are compiled after the change of one", n)
	}
	if err := try(801); err != nil {
		t.Error(err)
	}
}

// A server starts although a policy refuses everything, and makes what every cluster has.
func TestStart(t *testing.T) {
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "plinth.db")
	run := func() (*servertest.Server, kubernetes.Interface) {
		srv, err := servertest.Run(t.Context(), servertest.Options{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		return srv, clientOf(srv)
	}
	srv, client := run()
	if err := client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	policy := newPolicy("all", "*", "false")
	policy.Spec.MatchConstraints.ResourceRules[0].APIGroups = []string{"*"}
	policy.Spec.MatchConstraints.ResourceRules[0].APIVersions = []string{"*"}
	putPolicy(t, client, policy, newBinding("all"))
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	srv, client = run()
	defer srv.Close()
	if _, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if !refused(t, tryCreate(t.Context(), client, nil), "all") {
		t.Error("the policy is not in force after a restart")
	}
}

// The audit log has the annotations of policies: those that a policy makes, and its refusals if
// a binding says so.
func TestAuditAnnotations(t *testing.T) {
	dir := t.TempDir()
	o := audit.NewOptions()
	o.PolicyFile, o.LogOptions.Path = filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	o.LogOptions.BatchOptions.Mode = "blocking"
	if err := os.WriteFile(o.PolicyFile, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Config{Controllers: []string{}, Audit: o})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	client := apitest.Typed(t, srv)
	policy, binding := newPolicy("p", "configmaps", "object.data.v != 'bad'"), newBinding("p")
	policy.Spec.AuditAnnotations = []v1.AuditAnnotation{{Key: "value", ValueExpression: "'it is ' + string(object.data.v)"}}
	binding.Spec.ValidationActions = []v1.ValidationAction{v1.Audit}
	putPolicy(t, client, policy, binding)
	if err := tryCreate(t.Context(), client, map[string]string{"v": "bad"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.LogOptions.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"p/value":"it is bad"`,
		`"validation.policy.admission.k8s.io/validation_failure":"[{\"message\":\"refused by p\",\"policy\":\"p\",\"binding\":\"p\",\"expressionIndex\":0,\"validationActions\":[\"Audit\"]}]"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in the audit log", want)
		}
	}
}

// Policies count what they refuse in /metrics.
func TestMetrics(t *testing.T) {
	srv := server.New(server.Config{Controllers: []string{}})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	client := apitest.Typed(t, srv)
	policy := newPolicy("counted", "configmaps", "false")
	policy.Spec.MatchConditions = []v1.MatchCondition{{Name: "c", Expression: "object.metadata.name == 'x'"}}
	policy.Spec.FailurePolicy = ptr.To(v1.Fail)
	// The server writes ConfigMaps of its own into kube-system when it has begun.
	policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "default"}}
	putPolicy(t, client, policy, newBinding("counted"))
	if !refused(t, tryCreate(t.Context(), client, nil), "counted") {
		t.Error("not refused")
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("excluded", nil, nil), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	_, _, text := apitest.Do(t, apitest.Admin(t, srv), "GET", srv.URL()+"/metrics", "")
	for _, want := range []string{
		`apiserver_validating_admission_policy_check_total{enforcement_action="deny",error_type="invalid_error",policy="counted",policy_binding="counted"} 1`,
		`apiserver_validating_admission_policy_check_duration_seconds_count{enforcement_action="deny",error_type="invalid_error",policy="counted",policy_binding="counted"} 1`,
		`apiserver_admission_match_condition_evaluation_seconds_count{kind="policy",name="counted",operation="CREATE",type="validate"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in /metrics", want)
		}
	}
}
