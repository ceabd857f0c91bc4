package past

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`

func replicas(n int64) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, n, "spec", "replicas") }
}

func replicasOf(o *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return n
}

// TestUndoKeepsStatus undoes the newest change that is not one of the status, and leaves the status and
// the finalizers as they are. Undoing twice brings the change back.
func TestUndoKeepsStatus(t *testing.T) {
	t.Parallel()
	f := start(t)
	web := f.target("deploy", "web")
	f.create(f.c, "deployments", deployment)
	f.change(f.c, web, replicas(2))
	f.change(f.c, web, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(2), "status", "replicas")
	}, "status")
	f.change(f.c, web, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/keep"}) })
	f.change(f.c, web, replicas(3))
	before := f.now(web)
	for _, want := range []int64{2, 3} {
		after := f.do(f.c.Reverter.Undo(f.Context(), web, Moment{}))
		status, _, _ := unstructured.NestedInt64(after.Object, "status", "replicas")
		if replicasOf(after) != want || status != 2 || after.GetUID() != before.GetUID() || len(after.GetFinalizers()) != 1 {
			t.Errorf("undone: %v", after.Object)
		}
	}
	managers := f.now(web).GetManagedFields()
	if last := managers[len(managers)-1]; last.Manager != UndoManager {
		t.Errorf("the last manager is %s", last.Manager)
	}
	after := f.do(f.c.Reverter.Undo(f.Context(), web, Moment{Back: 5})) // that before finalizers, too
	if replicasOf(after) != 1 || len(after.GetFinalizers()) != 1 {
		t.Errorf("undone to the beginning: %v", after.Object)
	}
}

// TestUndoChange takes one change back, and keeps what was changed after it. What is no change that a write can take back is
// refused.
func TestUndoChange(t *testing.T) {
	t.Parallel()
	f := start(t)
	web := f.target("deploy", "web")
	f.create(f.c, "deployments", deployment)
	created := revisionOf(f.now(web))
	f.change(f.c, web, func(o *unstructured.Unstructured) {
		replicas(4)(o)
		o.SetAnnotations(map[string]string{"why": "sale"})
	})
	changed := revisionOf(f.now(web))
	f.change(f.c, web, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"team": "core"}) })
	f.change(f.c, web, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(2), "status", "replicas")
	}, "status")
	status := revisionOf(f.now(web))
	f.create(f.c, "configmaps", configMap("a", "1"))
	other := revisionOf(f.now(f.target("configmaps", "a")))
	for revision, want := range map[int64]string{
		created: "was created", status: "changed the status", other: "changed something else", other + 1000: "1",
	} {
		if _, err := f.c.Reverter.UndoChange(f.Context(), web, revision); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("revision %d: %v, not %q", revision, err, want)
		}
	}
	after := f.do(f.c.Reverter.UndoChange(f.Context(), web, changed))
	if replicasOf(after) != 1 || len(after.GetAnnotations()) != 0 || after.GetLabels()["team"] != "core" {
		t.Errorf("undone: %v", after.Object)
	}
}

// TestUndoCreation deletes what the last change has created, and only that.
func TestUndoCreation(t *testing.T) {
	t.Parallel()
	f := start(t)
	a := f.target("configmaps", "a")
	f.create(f.c, "configmaps", configMap("a", "1"))
	step, err := f.c.Reverter.Undo(f.Context(), a, Moment{})
	f.must(err)
	if step.Verb() != "delete" {
		t.Fatalf("the step is to %s", step.Verb())
	}
	f.change(f.c, a, set("k", "2"))
	if _, err := f.c.Reverter.Do(f.Context(), step, false); err == nil || !strings.Contains(err.Error(), "changed meanwhile") || f.now(a) == nil {
		t.Errorf("a changed object was deleted: %v", err)
	}
	f.remove(f.c, a)
	if _, err := f.c.Reverter.Undo(f.Context(), a, Moment{}); err == nil || !strings.Contains(err.Error(), "plinth undelete configmaps/a") {
		t.Errorf("undo of what is deleted: %v", err)
	}
	if _, err := f.c.Reverter.Undo(f.Context(), f.target("configmaps", "never"), Moment{}); err == nil || !strings.Contains(err.Error(), "no change of it is kept") {
		t.Errorf("undo of what never was: %v", err)
	}
}

// TestUndoConflict has a change between the look and the write.
func TestUndoConflict(t *testing.T) {
	t.Parallel()
	f := start(t)
	a := f.target("configmaps", "a")
	f.create(f.c, "configmaps", configMap("a", "1"))
	f.change(f.c, a, set("k", "2"))
	step, err := f.c.Reverter.Undo(f.Context(), a, Moment{})
	f.must(err)
	f.change(f.c, a, set("k", "3"))
	if _, err := f.c.Reverter.Do(f.Context(), step, false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing was undone") {
		t.Errorf("the undo was not refused: %v", err)
	}
	if got := valueOf(f.now(a)); got != "3" {
		t.Errorf("it is %s", got)
	}
}

// TestUndoRefused has undos that validation and admission refuse: they change nothing.
func TestUndoRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, name := range []string{"a", "b"} {
		f.create(f.c, "configmaps", configMap(name, "1"))
		f.change(f.c, f.target("configmaps", name), set("k", "2"))
	}
	a, b := f.target("configmaps", "a"), f.target("configmaps", "b")
	f.change(f.c, a, func(o *unstructured.Unstructured) { o.Object["immutable"] = true })
	f.forbid()
	for _, test := range []struct {
		t    Target
		back int
		has  string
	}{{a, 2, "immutable"}, {b, 1, "must not be 1"}} {
		before := f.now(test.t)
		step, err := f.c.Reverter.Undo(f.Context(), test.t, Moment{Back: test.back})
		f.must(err)
		for _, err := range []error{f.c.Reverter.Try(f.Context(), step), f.try(step)} {
			if err == nil || !strings.Contains(err.Error(), test.has) || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("undo of %s: %v", test.t, err)
			}
		}
		if now := f.now(test.t); now.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("%s was changed", test.t)
		}
	}
}

func (f *fixture) try(step *Step) error {
	_, err := f.c.Reverter.Do(f.Context(), step, false)
	return err
}

// forbid makes a policy that refuses ConfigMaps whose value is 1, and waits until it does.
func (f *fixture) forbid() {
	f.Helper()
	f.create(f.c, "validatingadmissionpolicies", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-1}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "object.data.k != '1'", message: must not be 1}]
`)
	f.create(f.c, "validatingadmissionpolicybindings", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-1}
spec: {policyName: no-1, validationActions: [Deny]}
`)
	object := f.parse(configMap("tried", "1"))
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		options := metav1.CreateOptions{DryRun: dryRunOf(true)}
		if _, err := f.c.Reverter.endpoint(f.target("configmaps", "tried"), object).Create(f.Context(), object, options); err != nil {
			return
		}
	}
	f.Fatal("the policy has no effect")
}
