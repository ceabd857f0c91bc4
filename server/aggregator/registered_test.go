package aggregator

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
)

// TestRegister is the table in the documentation of upstream's checkAPIService
// (kube-aggregator/pkg/controllers/autoregister), with what a second reconciliation does: that
// of a name which was reconciled before.
func TestRegister(t *testing.T) {
	f := openFixture(t)
	f.a.atStart = map[string]bool{}
	desired := []string{"not found", "sync on start", "sync always"}
	for _, row := range []struct {
		current string
		label   string // of the stored object
		want    [3]string
		again   [3]string
	}{
		{"not found", "", [3]string{"-", "create", "create"}, [3]string{"-", "-", "create"}},
		{"no sync", "", [3]string{"-", "-", "-"}, [3]string{"-", "-", "-"}},
		{"sync on start, not present at start", "onstart", [3]string{"-", "-", "-"}, [3]string{"-", "-", "-"}},
		{"sync on start, present at start", "onstart", [3]string{"delete", "update", "update"}, [3]string{"-", "-", "-"}},
		{"sync always", "true", [3]string{"delete", "update", "update"}, [3]string{"delete", "-", "update"}},
	} {
		for i, desire := range desired {
			for round, want := range []string{row.want[i], row.again[i]} {
				t.Run(fmt.Sprintf("current: %s/desired: %s/%d", row.current, desire, round), func(t *testing.T) {
					f.t = t
					group := fmt.Sprintf("g%d.example.com", len(f.a.done)*2+round)
					name := "v1." + group
					wanted := int32(1000)
					if desire == "sync on start" {
						f.a.own[name] = local(name, 1000, "")
					} else if desire == "sync always" {
						f.define(group, "v1")
					}
					if row.current != "not found" {
						f.create(local(name, 7, row.label))
					}
					f.a.atStart[name] = row.current == "sync on start, present at start"
					f.a.done[name] = round == 1
					revision := f.api.Store.Revision()
					f.reconcile(f.a, name)
					if got := did(f.get(name), row.current != "not found", wanted); got != want {
						t.Errorf("%s, want %s", got, want)
					}
					if writes := f.api.Store.Revision() - revision; writes > 1 || (writes == 1) != (want != "-") {
						t.Errorf("%d writes", writes)
					}
					if !f.a.done[name] {
						t.Error("the name does not count as reconciled")
					}
				})
			}
		}
	}
}

// did returns the action after which now is stored. Before it there was an object of another
// priority than wanted, or none.
func did(now *apiregistration.APIService, before bool, wanted int32) string {
	switch {
	case now == nil && before:
		return "delete"
	case now == nil:
		return "-"
	case now.Spec.GroupPriorityMinimum != wanted:
		return "-"
	case before:
		return "update"
	}
	return "create"
}

// The label of an APIService says how it is kept: those of the built-in group versions at the
// start of a server, those of definitions always.
func TestWanted(t *testing.T) {
	f := openFixture(t)
	f.define("example.com", "v1", "v2-")
	own, err := f.a.wanted(t.Context(), "v1.apps")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.a.own["v1.apps"].Spec, own.Spec); diff != "" || own.Labels[managedLabel] != "onstart" {
		t.Errorf("v1.apps is labelled %v and differs (-want +got):\n%s", own.Labels, diff)
	}
	custom, err := f.a.wanted(t.Context(), "v1.example.com")
	if err != nil {
		t.Fatal(err)
	}
	want := apiregistration.APIServiceSpec{Group: "example.com", Version: "v1", GroupPriorityMinimum: 1000, VersionPriority: 100}
	if diff := cmp.Diff(want, custom.Spec); diff != "" || custom.Labels[managedLabel] != "true" {
		t.Errorf("v1.example.com is labelled %v and differs (-want +got):\n%s", custom.Labels, diff)
	}
	for _, name := range []string{"v2.example.com", "v3.example.com", "v1.widgets.example.com", "v9.apps"} {
		if s, err := f.a.wanted(t.Context(), name); s != nil || err != nil {
			t.Errorf("%s: %v, %v, want none", name, s, err)
		}
	}
}

// An object that names no Service is always available, whatever its status said. The status of
// one that names a Service is left to the check of its extension server.
func TestMarkLocal(t *testing.T) {
	f := openFixture(t)
	object := f.create(remote("v1.mine.example.com"))
	away := apiregistration.APIServiceCondition{Type: apiregistration.Available, Status: apiregistration.ConditionFalse, Reason: "MissingEndpoints"}
	helper.SetAPIServiceCondition(object, away)
	if _, err := f.a.api.APIServices().UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.reconcile(f.a, object.Name)
	if got := f.available(object.Name); got != "False MissingEndpoints" {
		t.Errorf("with a Service: %s", got)
	}
	f.patch(object.Name, `{"spec":{"service":null,"insecureSkipTLSVerify":null}}`)
	f.reconcile(f.a, object.Name)
	if got := f.available(object.Name); got != "True Local" {
		t.Errorf("without a Service: %s", got)
	}
	if f.get(object.Name).Spec.GroupPriorityMinimum != 1 {
		t.Error("a user's own object was changed")
	}
}

// available returns the condition Available as its status and reason.
func (f *fixture) available(name string) string {
	f.t.Helper()
	c := helper.GetAPIServiceConditionByType(f.get(name), apiregistration.Available)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// A server that starts registers all built-in group versions once. Those that somebody deletes
// or changes later stay so until the next start.
func TestBegin(t *testing.T) {
	f := openFixture(t)
	begin := func(a *APIServices) int64 {
		t.Helper()
		revision := f.api.Store.Revision()
		if err := a.begin(t.Context()); err != nil || a.names.Len() > 0 {
			t.Fatalf("%v; tried again: %v", err, queued(a.names))
		}
		return f.api.Store.Revision() - revision
	}
	begin(f.a)
	stored := map[string]int{}
	for _, ev := range f.changes(apiServicePrefix, 0) {
		stored[apiServiceName(ev.Entry)]++
	}
	want := map[string]int{}
	for name := range f.a.own {
		want[name] = 1
	}
	if diff := cmp.Diff(want, stored); diff != "" || len(want) < 20 {
		t.Errorf("writes (-want +got) of %v:\n%s", slices.Sorted(maps.Keys(stored)), diff)
	}

	f.delete("v1.apps")
	f.patch("v1.batch", `{"spec":{"versionPriority":16}}`)
	for _, name := range []string{"v1.apps", "v1.batch"} {
		f.reconcile(f.a, name)
	}
	if f.get("v1.apps") != nil || f.get("v1.batch").Spec.VersionPriority != 16 {
		t.Error("an object that is kept at the start was mended later")
	}
	next := f.restart(f.a.remote)
	begin(next)
	if f.get("v1.apps") == nil || f.get("v1.batch").Spec.VersionPriority != f.a.own["v1.batch"].Spec.VersionPriority {
		t.Error("the next start has not mended the objects")
	}
	if n := begin(f.restart(f.a.remote)); n != 0 {
		t.Errorf("a start with nothing to mend wrote %d times", n)
	}
}
