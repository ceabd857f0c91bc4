package past

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/servertest"
)

// TestUndelete creates a deleted object again, without its status and with the owner that is still there.
func TestUndelete(t *testing.T) {
	t.Parallel()
	f := start(t)
	web := f.target("deployments", "web")
	kept := f.create(f.c, "configmaps", configMap("kept", ""))
	lost := f.create(f.c, "configmaps", configMap("lost", ""))
	f.create(f.c, "deployments", deployment)
	f.change(f.c, web, func(o *unstructured.Unstructured) {
		o.Object["metadata"].(map[string]any)["ownerReferences"] = []any{ownerOf(kept), ownerOf(lost)}
	})
	f.change(f.c, web, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(2), "status", "replicas")
	}, "status")
	f.remove(f.c, f.target("configmaps", "lost"))
	f.create(f.c, "configmaps", configMap("lost", "")) // another one
	before := f.now(web)
	f.remove(f.c, web)

	step, err := f.c.Reverter.Undelete(f.Context(), web, Moment{})
	f.must(err)
	if len(step.Lost) != 1 || step.Lost[0].Name != "lost" || !step.Status {
		t.Errorf("lost are %v, status %v", step.Lost, step.Status)
	}
	after := f.do(step, nil)
	owners := after.GetOwnerReferences()
	if after.GetUID() == before.GetUID() || len(owners) != 1 || owners[0].UID != kept.GetUID() || replicasOf(after) != 1 {
		t.Errorf("undeleted: %v", after.Object)
	}
	if status, _, _ := unstructured.NestedInt64(after.Object, "status", "replicas"); status != 0 {
		t.Errorf("it has a status of %d replicas", status)
	}
	if _, err := f.c.Reverter.Undelete(f.Context(), web, Moment{}); err == nil || !strings.Contains(err.Error(), "deployments.apps/web is there") {
		t.Errorf("undeleted twice: %v", err)
	}
}

func ownerOf(o *unstructured.Unstructured) map[string]any {
	return map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "name": o.GetName(), "uid": string(o.GetUID())}
}

// TestUndeleteAll brings back a namespace, which others have emptied before it was gone, and an owner, each
// with what went with it, and nothing that was deleted before.
func TestUndeleteAll(t *testing.T) {
	t.Parallel()
	f := start(t, servertest.Options{Controllers: []string{"namespace", "garbagecollector"}})
	maps, prod, owner := f.kind("configmaps"), f.kind("namespaces").In("", "prod"), f.target("configmaps", "owner")
	f.write(f.c, prod, "{apiVersion: v1, kind: Namespace, metadata: {name: prod}}")
	for _, name := range []string{"settings", "old"} {
		f.write(f.c, maps.In("prod", name), configMap(name, "1"))
	}
	f.remove(f.c, maps.In("prod", "old"))
	f.create(f.c, "configmaps", configMap("owner", "1"))
	f.create(f.c, "configmaps", configMap("owned", "1"))
	f.change(f.c, f.target("configmaps", "owned"), ownedBy(f.now(owner), false))
	if _, err := f.c.Reverter.UndeleteAll(f.Context(), prod); err == nil || !strings.Contains(err.Error(), "namespaces/prod is there") {
		t.Errorf("before it is deleted: %v", err)
	}
	for _, target := range []Target{prod, owner} {
		f.remove(f.c, target)
	}
	for _, target := range []Target{prod, f.target("configmaps", "owned")} {
		f.eventually(func() error {
			if f.now(target) != nil {
				return errors.New(target.String() + " is still there")
			}
			return nil
		})
	}
	for _, row := range []struct {
		target Target
		want   string
	}{{prod, "prod settings"}, {owner, "owner owned"}} {
		deeds, err := f.c.Reverter.UndeleteAll(f.Context(), row.target)
		f.must(err)
		var got []string
		for _, d := range deeds {
			got = append(got, d.Object.Name)
			f.must(f.undo(d))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("brought back: %v, want %s", got, row.want)
		}
	}
	if f.now(maps.In("prod", "settings")) == nil || f.now(maps.In("prod", "old")) != nil {
		t.Error("not what was there when the namespace was deleted")
	}
	if owners := f.now(f.target("configmaps", "owned")).GetOwnerReferences(); len(owners) != 1 || owners[0].UID != f.now(owner).GetUID() {
		t.Errorf("the owners are %v", owners)
	}
	if _, err := f.c.Reverter.UndeleteAll(f.Context(), f.target("configmaps", "never")); err == nil || !strings.Contains(err.Error(), "no deletion of it is kept; plinth trash configmaps -n default lists") {
		t.Errorf("what never was: %v", err)
	}
}

// TestUndeleteJob has fields that the server made from the old uid.
func TestUndeleteJob(t *testing.T) {
	t.Parallel()
	f := start(t)
	job := f.target("jobs", "once")
	before := f.create(f.c, "jobs", `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
`)
	f.remove(f.c, job)
	if f.now(job) != nil { // Jobs orphan their Pods by default, which a controller would do
		f.change(f.c, job, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	}
	after := f.do(f.c.Reverter.Undelete(f.Context(), job, Moment{}))
	uid, _, _ := unstructured.NestedString(after.Object, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid")
	if uid != string(after.GetUID()) || uid == string(before.GetUID()) {
		t.Errorf("the selector is for %s", uid)
	}
}

// TestUndeleteRefused changes nothing where admission refuses, and names the namespace that is gone.
func TestUndeleteRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.create(f.c, "configmaps", configMap("a", "1"))
	f.remove(f.c, f.target("configmaps", "a"))
	f.forbid()
	step, err := f.c.Reverter.Undelete(f.Context(), f.target("configmaps", "a"), Moment{})
	f.must(err)
	if err := f.try(step); err == nil || !strings.Contains(err.Error(), "must not be 1") || f.now(step.Target) != nil {
		t.Errorf("not refused: %v", err)
	}
	step.Target.Namespace = "gone"
	step.After.SetNamespace("gone")
	if err := f.try(step); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "plinth undelete namespaces/gone") {
		t.Errorf("in a namespace that is gone: %v", err)
	}
}

// TestTrash has what was deleted and not created again, the newest first.
func TestTrash(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.create(f.c, "configmaps", configMap(name, "1"))
	}
	for _, name := range []string{"a", "b", "c"} {
		f.remove(f.c, f.target("configmaps", name))
	}
	f.create(f.c, "configmaps", configMap("b", "2"))
	f.create(f.c, "configmaps", configMap("a", "2"))
	f.remove(f.c, f.target("configmaps", "a"))
	for limit, want := range map[int]string{0: "a c", 1: "a"} {
		var got []string
		for change, err := range f.c.History.Trash(f.Context(), Query{Namespace: "default", Limit: limit}.With(historyv1.FieldResource, "configmaps")) {
			f.must(err)
			got = append(got, change.Object.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("limit %d: the trash has %v, want %s", limit, got, want)
		}
	}
}
