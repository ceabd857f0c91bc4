package rest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/rest"
)

// again sends a request that changes nothing twice. Both answers must be the same.
func (h *harness) again(namespace, do, body string) answer {
	h.t.Helper()
	before := h.store.Revision()
	first := h.doStep(namespace, applyStep{do: do, body: body}).want(200)
	second := h.doStep(namespace, applyStep{do: do, body: body}).want(200)
	if first.body != second.body || fmt.Sprint(first.head["Warning"]) != fmt.Sprint(second.head["Warning"]) {
		h.t.Errorf("%s again: got\n%s %v, before it was\n%s %v", do, second.body, second.head["Warning"], first.body, first.head["Warning"])
	}
	if now := h.store.Revision(); now != before {
		h.t.Errorf("%s moved the revision from %d to %d", do, before, now)
	}
	return second
}

// TestApplyUnchanged wants an apply that is answered from memory to be answered as if it were not.
func TestApplyUnchanged(t *testing.T) {
	simple, more := cmOf("", `"data":{"k":"1"}`), cmOf("", `"data":{"k":"1","j":"1"}`)
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		for i, row := range []struct {
			name, again string // what is repeated before the steps
			body        string
			steps       []applyStep
		}{
			{"an apply is done anew after another manager has changed one of its fields", "apply c as alice", simple, []applyStep{
				{"apply c as bob force=true", cmOf("", `"data":{"k":"2"}`), 200, "data/k=2"},
				{"apply c as alice", simple, 409, `Conflict: Apply failed with 1 conflict: conflict with "bob": .data.k; FieldManagerConflict .data.k conflict with "bob"`},
				{"apply c as alice force=true", simple, 200, "data/k=1; revision=new"},
			}},
			{"an apply answers with the other fields that another manager has changed", "apply c as alice", simple, []applyStep{
				{"merge c as bob", `{"data":{"j":"2"}}`, 200, "data/j=2"},
				{"apply c as alice", simple, 200, "data/j=2; data/k=1; revision=same"},
			}},
			{"an apply is done anew after its manager has applied another configuration", "apply c as alice", simple, []applyStep{
				{"apply c as alice", more, 200, "data/j=1"},
				{"apply c as alice", simple, 200, "data/j=; revision=new"},
			}},
			{"an apply creates a deleted object again", "apply c as alice", simple, []applyStep{
				{"delete c", "", 200, "kind=Status"},
				{"apply c as alice", simple, 201, "data/k=1"},
			}},
			{"an apply to a new object of the same name is done anew", "apply c as alice", simple, []applyStep{
				{"delete c", "", 200, "kind=Status"},
				{"post c as bob", simple, 201, "data/k=1"},
				{"apply c as alice", simple, 200, "fields=alice applies .data.k | bob updates .data .data.k; revision=new"},
			}},
			{"an apply by another manager is another apply", "apply c as alice", simple, []applyStep{
				{"apply c as bob", simple, 200, "fields=alice applies .data.k | bob applies .data.k; revision=new"},
			}},
			{"an apply of another configuration is another apply", "apply c as alice", simple, []applyStep{
				{"apply c as alice", more, 200, "data/j=1; revision=new"},
			}},
			{"an apply with a stale resourceVersion is a conflict", "apply c as alice", simple, []applyStep{
				{"apply c as alice", cmOf(`"resourceVersion":"1"`, `"data":{"k":"1"}`), 409, `Conflict: Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to the latest version and try again`},
			}},
			{"an apply with force is another apply", "apply c as alice force=true", simple, []applyStep{
				{"put c as bob", cmOf("", `"data":{"k":"2"}`), 200, "data/k=2"},
				{"apply c as alice", simple, 409, `Conflict: Apply failed with 1 conflict: conflict with "bob" using v1: .data.k; FieldManagerConflict .data.k conflict with "bob" using v1`},
				{"apply c as alice force=true", simple, 200, "data/k=1"},
			}},
			{"warnings are sent again, and are errors with fieldValidation=Strict", "apply c as alice", cmOf("", `"data":{"k":"2","k":"1"}`), []applyStep{
				{"apply c as alice fieldValidation=Warn", cmOf("", `"data":{"k":"2","k":"1"}`), 200, "revision=same; warnings=299 - \"line 1: key \\\"k\\\" already set in map\""},
				{"apply c as alice fieldValidation=Ignore", cmOf("", `"data":{"k":"2","k":"1"}`), 200, "revision=same; warnings="},
				{"apply c as alice fieldValidation=Strict", cmOf("", `"data":{"k":"2","k":"1"}`), 400, "BadRequest: error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \"k\" already set in map"},
			}},
			{"a dry run is not remembered as an apply", "apply c as alice", simple, []applyStep{
				{"apply c as alice dryRun=All", more, 200, "data/j=1; revision=same"},
				{"apply c as alice dryRun=All", more, 200, "data/j=1; revision=same"},
				{"get c", "", 200, "data/j=; revision=same"},
				{"apply c as alice", more, 200, "data/j=1; revision=new"},
				{"apply c as alice dryRun=All", more, 200, "data/j=1; revision=same"},
			}},
			{"a refused apply is not remembered", "apply c as alice", simple, []applyStep{
				{"apply c as bob", cmOf("", `"data":{"k":"2"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .data.k; FieldManagerConflict .data.k conflict with "alice"`},
				{"apply c as bob", cmOf("", `"data":{"k":"2"}`), 409, `Conflict: Apply failed with 1 conflict: conflict with "alice": .data.k; FieldManagerConflict .data.k conflict with "alice"`},
				{"merge c as carol", `{"data":{"k":"2"}}`, 200, "data/k=2"},
				{"apply c as bob", cmOf("", `"data":{"k":"2"}`), 200, "fields=bob applies .data.k | carol updates .data.k"},
			}},
			{"an apply to the status is another apply", "apply d as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), []applyStep{
				{"apply d/status as alice", depOf("", `"status":{"replicas":1}`), 200, "status/replicas=1"},
				{"apply d/status as alice", depOf("", `"spec":{`+minimalSpec("c", "")+`}`), 200, "status/replicas=; managers=alice Apply apps/v1; revision=new"},
			}},
			{"an apply in another version is another apply", "apply hpa2 as alice", hpaOf("v2", `"maxReplicas":3`), []applyStep{
				{"apply hpa1 as alice", hpaOf("v2", `"maxReplicas":3`), 400, "BadRequest: invalid object type: autoscaling/v2, Kind=HorizontalPodAutoscaler"},
				{"apply hpa1 as alice", hpaOf("v1", `"maxReplicas":3`), 200, "managers=alice Apply autoscaling/v1; revision=new"},
			}},
		} {
			t.Run(row.name, func(t *testing.T) {
				here := *h
				here.t = t
				namespace := fmt.Sprintf("apply-u%d", i)
				here.doStep(namespace, applyStep{do: row.again, body: row.body}).want(201)
				here.again(namespace, row.again, row.body)
				here.play(namespace, append([]applyStep{{row.again, row.body, 200, "kind=" + here.again(namespace, row.again, row.body).get("kind")}}, row.steps...))
			})
		}
	})
}

// TestApplyUnchangedBesideAnotherReplica wants an answer from memory to have the changes that
// another replica has made before.
func TestApplyUnchangedBesideAnotherReplica(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		here, there := newHarnessOn(t, dsn, awayOnOthers, rest.Options{}), newHarnessOn(t, dsn, awayOnOthers, rest.Options{})
		body := cmOf("", `"data":{"k":"1"}`)
		here.doStep("x", applyStep{do: "apply c as alice", body: body}).want(201)
		here.again("x", "apply c as alice", body)
		for i := range 20 {
			patched := there.doStep("x", applyStep{do: "merge c as bob", body: fmt.Sprintf(`{"data":{"j":"%d"}}`, i)}).want(200)
			if got := here.doStep("x", applyStep{do: "apply c as alice", body: body}).want(200); got.body != patched.body {
				t.Fatalf("got\n%s, the other replica has\n%s", got.body, patched.body)
			}
		}
		there.doStep("x", applyStep{do: "merge c as bob", body: `{"data":{"k":"2"}}`}).want(200)
		here.doStep("x", applyStep{do: "apply c as alice", body: body}).want(409)
	})
}

// mood is an admission plugin whose decision the test changes.
type mood struct{ labels, warns, refuses, asked atomic.Bool }

func (m *mood) Handles(op apiadmission.Operation) bool { return op == apiadmission.Update }

func (m *mood) Admit(ctx context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	m.asked.Store(true)
	if m.warns.Load() {
		warning.AddWarning(ctx, "", "careful")
	}
	if !m.labels.Load() {
		return nil
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	object.SetLabels(map[string]string{"seen": "yes"})
	return nil
}

func (m *mood) Validate(_ context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	if old, err := meta.Accessor(a.GetOldObject()); err != nil || old.GetName() != a.GetName() {
		return fmt.Errorf("no old object: %v", err)
	}
	if m.refuses.Load() {
		return apiadmission.NewForbidden(a, errors.New("not today"))
	}
	return nil
}

// TestApplyUnchangedAdmission wants admission to be asked about every apply, also about those that
// are answered from memory.
func TestApplyUnchangedAdmission(t *testing.T) {
	m := &mood{}
	h := newHarness(t, rest.Options{Admission: m})
	body := cmOf("", `"data":{"k":"1"}`)
	h.doStep("x", applyStep{do: "apply c as alice", body: body}).want(201)
	apply := func(want string, code int) {
		t.Helper()
		m.asked.Store(false)
		a := h.doStep("x", applyStep{do: "apply c as alice", body: body}).want(code)
		if got := a.told(want, ""); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if !m.asked.Load() {
			t.Error("admission was not asked")
		}
	}
	for range 2 {
		apply("metadata/labels=; warnings=", 200)
	}
	m.refuses.Store(true)
	for range 2 {
		apply(`Forbidden: configmaps "c" is forbidden: not today`, 403)
	}
	m.refuses.Store(false)
	m.warns.Store(true)
	for range 2 {
		apply(`metadata/labels=; warnings=299 - "careful"`, 200)
	}
	m.warns.Store(false)
	apply("metadata/labels=; warnings=", 200)
	m.labels.Store(true)
	for range 2 {
		apply(`metadata/labels={"seen":"yes"}; warnings=`, 200)
	}
	m.warns.Store(true) // warns for the first time of an object of this revision
	apply(`metadata/labels={"seen":"yes"}; warnings=299 - "careful"`, 200)
	h.doStep("x", applyStep{do: "merge c as bob", body: `{"data":{"j":"1"}}`}).want(200)
	for range 2 {
		apply(`metadata/labels={"seen":"yes"}; warnings=299 - "careful"`, 200)
	}
	m.warns.Store(false)
	apply(`metadata/labels={"seen":"yes"}; warnings=`, 200)
}
