package definitions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const finalizer = "example.com/hold"

// finalized gives a definition a finalizer that nobody takes away.
func finalized(crd *apiextensionsv1.CustomResourceDefinition) { crd.Finalizers = []string{finalizer} }

func (f *fixture) mustAdd(plural, kind, name string, finalizers ...string) {
	f.t.Helper()
	if err := f.add(plural, kind, name, finalizers...); err != nil {
		f.t.Fatal(err)
	}
}

// release takes the finalizers of an object away.
func (f *fixture) release(plural, name string) {
	f.t.Helper()
	err := f.rest.Patch(types.MergePatchType).AbsPath("/apis/"+group+"/v1/"+plural, name).
		Body([]byte(`{"metadata":{"finalizers":null}}`)).Do(f.t.Context()).Error()
	if err != nil {
		f.t.Fatal(err)
	}
}

// stored returns the names of the group's objects of a plural in the store.
func (f *fixture) stored(plural string) (names []string) {
	f.t.Helper()
	prefix := object.Prefix(group, plural)
	from, to := changelog.RangeOf(prefix)
	err := f.api.Store.Current(prefix).Scan(f.t.Context(), from, to, func(e *sqlstore.Entry) bool {
		names = append(names, strings.TrimPrefix(e.Key, prefix))
		return true
	})
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// commit stores an object as another server does that has not noticed the deletion.
func (f *fixture) commit(key string, value []byte) {
	f.t.Helper()
	if _, err := f.api.Store.Commit(f.t.Context(), sqlstore.Change{Key: key, Value: value}); err != nil {
		f.t.Fatal(err)
	}
}

// "When you delete a CustomResourceDefinition, the server will uninstall the RESTful API
// endpoint and delete all custom objects stored in it. If you later recreate the same
// CustomResourceDefinition, it will start out empty."
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#delete-a-customresourcedefinition
func TestDeleteInstances(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.define(definition("foos", "Foo"))
	f.define(definition("bars", "Bar"))
	for _, object := range []string{"a", "b"} {
		f.mustAdd("foos", "Foo", object)
		f.mustAdd("bars", "Bar", object)
	}
	f.delete(name)
	f.catchUp()
	if got := f.conditions(name)["Terminating"]; got != "True InstanceDeletionPending" {
		t.Errorf("marked: Terminating is %s", got)
	}
	f.terminate()
	if f.get(name) != nil || f.stored("foos") != nil {
		t.Errorf("left: %v, objects %v", f.conditions(name), f.stored("foos"))
	}
	if diff := cmp.Diff([]string{"v1 bars Bar"}, f.served()); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, f.stored("bars")); diff != "" {
		t.Errorf("objects of another definition (-want +got):\n%s", diff)
	}
	f.define(definition("foos", "Foo"))
	if got := f.stored("foos"); got != nil {
		t.Errorf("a definition of that name begins with %v", got)
	}
}

// "Terminating means that the CustomResourceDefinition has been deleted and is cleaning up."
// While an instance has a finalizer the definition stays. An instance that is stored meanwhile is
// deleted in the next round.
func TestDeleteInstancesWithFinalizers(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.define(definition("foos", "Foo"))
	f.mustAdd("foos", "Foo", "free")
	f.mustAdd("foos", "Foo", "held", finalizer)
	f.delete(name)
	f.catchUp()
	if err := f.add("foos", "Foo", "refused"); err == nil {
		t.Error("an object was created while the definition is terminating")
	}
	key := object.Prefix(group, "foos")
	value := object.Unsplice(f.api.Store.Get(key + "free"))
	rounds := 0
	f.d.config.DeleteAll = func(ctx context.Context, k *kind.Kind) error {
		if rounds++; rounds == 1 {
			defer f.commit(key+"late", value) // by a create that was under way
		} else {
			if got := f.conditions(name)["Terminating"]; got != "True InstanceDeletionInProgress" {
				t.Errorf("Terminating is %s", got)
			}
			if diff := cmp.Diff([]string{"held", "late"}, f.stored("foos")); diff != "" {
				t.Errorf("after the first round (-want +got):\n%s", diff)
			}
			f.release("foos", "held")
		}
		return f.api.DeleteAll(ctx, k)
	}
	f.terminate()
	if f.get(name) != nil || f.stored("foos") != nil || rounds != 2 {
		t.Errorf("after %d rounds: %v, objects %v", rounds, f.conditions(name), f.stored("foos"))
	}
}

// Instances that cannot be deleted keep the definition, and its condition says why. The
// deletion is tried again.
func TestDeleteInstancesFails(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.define(definition("foos", "Foo"))
	f.mustAdd("foos", "Foo", "a")
	f.delete(name)
	f.catchUp()
	f.d.config.DeleteAll = func(context.Context, *kind.Kind) error { return errors.New("no room") }
	if err := f.d.deleteInstances(t.Context(), name); err == nil || err.Error() != "could not issue all deletes: no room" {
		t.Errorf("error %v", err)
	}
	crd := f.get(name)
	if got := conditionsOf(crd)["Terminating"]; got != "True InstanceDeletionFailed" || len(crd.Finalizers) != 1 {
		t.Errorf("Terminating is %s, finalizers %v", got, crd.Finalizers)
	}
	f.d.config.DeleteAll = f.api.DeleteAll
	if f.terminate(); f.get(name) != nil || f.stored("foos") != nil {
		t.Errorf("tried again: %v, objects %v", f.conditions(name), f.stored("foos"))
	}
}

// A deletion that fails again and again in the same way writes the condition once, and what it writes
// does not wake it.
func TestDeleteInstancesFailsAgain(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.define(definition("foos", "Foo"))
	f.mustAdd("foos", "Foo", "a")
	f.delete(name)
	f.catchUp()
	f.d.instances.Get() // queued by the deletion
	f.d.instances.Done(name)
	f.d.config.DeleteAll = func(context.Context, *kind.Kind) error { return errors.New("no room") }
	told := ""
	for range 3 {
		if err := f.d.deleteInstances(t.Context(), name); err == nil {
			t.Error("no error")
		}
		f.catchUp()
		if n := f.d.instances.Len(); n > 0 {
			t.Error("woken by its own write")
		}
		if now := f.get(name).ResourceVersion; told != "" && now != told {
			t.Error("the same failure was written again")
		} else {
			told = now
		}
	}
	f.patch(name, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)
	f.catchUp()
	if f.d.instances.Len() != 1 {
		t.Error("a change by somebody else does not have the deletion tried at once")
	}
}

// Instances that stay until the wait is over are one failure, however long their deletes take: it is written once.
func TestDeleteInstancesSlowly(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.define(definition("foos", "Foo"))
	f.mustAdd("foos", "Foo", "held", finalizer)
	f.delete(name)
	f.catchUp()
	f.d.config.WaitForInstances = 10 * time.Millisecond
	told := ""
	for _, takes := range []time.Duration{30 * time.Millisecond, 0, 30 * time.Millisecond} {
		f.d.config.DeleteAll = func(ctx context.Context, k *kind.Kind) error {
			return errors.Join(sleep.For(ctx, takes), f.api.DeleteAll(ctx, k))
		}
		const want = "could not confirm zero CustomResources remaining: context deadline exceeded"
		if err := f.d.deleteInstances(t.Context(), name); err == nil || err.Error() != want {
			t.Errorf("deletes take %v: %v", takes, err)
		}
		if got := f.conditions(name)["Terminating"]; got != "True InstanceDeletionCheck" {
			t.Errorf("deletes take %v: Terminating is %s", takes, got)
		}
		if now := f.get(name).ResourceVersion; told != "" && now != told {
			t.Error("the same failure was written again")
		} else {
			told = now
		}
	}
}

// Instances are deleted through the storage version, even if no version is served.
func TestDeleteInstancesUnserved(t *testing.T) {
	f := openFixture(t)
	f.define(definition("foos", "Foo"))
	f.mustAdd("foos", "Foo", "a")
	f.patch("foos."+group, `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	f.delete("foos." + group)
	f.catchUp()
	if f.terminate(); f.get("foos."+group) != nil || f.stored("foos") != nil {
		t.Errorf("left: %v, objects %v", f.conditions("foos."+group), f.stored("foos"))
	}
}

// A definition that was never established has no instances: what is stored under its name is
// another's.
func TestDeleteNeverEstablished(t *testing.T) {
	f := openFixture(t)
	f.define(definition("foos", "Foo", short("f")))
	f.define(definition("bars", "Bar", short("f"), finalized))
	f.d.config.DeleteAll = func(context.Context, *kind.Kind) error { return errors.New("instances were deleted") }
	f.delete("bars." + group)
	f.catchUp()
	f.terminate()
	if got := f.conditions("bars." + group)["Terminating"]; got != "False NeverEstablished" {
		t.Errorf("Terminating is %s", got)
	}
	if crd := f.get("bars." + group); len(crd.Finalizers) != 1 || crd.Finalizers[0] != finalizer {
		t.Errorf("finalizers %v", crd.Finalizers)
	}
}

// Other finalizers keep a definition whose instances are gone. Its condition says so.
func TestDeletionCompleted(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.define(definition("foos", "Foo", finalized))
	f.mustAdd("foos", "Foo", "a")
	f.delete(name)
	f.catchUp()
	f.terminate()
	if got := f.conditions(name)["Terminating"]; got != "False InstanceDeletionCompleted" || f.stored("foos") != nil {
		t.Errorf("Terminating is %s, objects %v", got, f.stored("foos"))
	}
}

// TestSweep has objects that another server stored after the end of their definition. They
// are deleted when the time for late ones is over. Those of the next definition stay.
func TestSweep(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.define(definition("foos", "Foo"))
	f.mustAdd("foos", "Foo", "old")
	key := object.Prefix(group, "foos")
	value := object.Unsplice(f.api.Store.Get(key + "old"))
	f.delete(name)
	f.catchUp()
	f.terminate()
	f.commit(key+"straggler", value)
	f.define(definition("foos", "Foo"))
	f.mustAdd("foos", "Foo", "new")
	sweep := func(want ...string) {
		t.Helper()
		if err := f.d.sweep(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.stored("foos")); diff != "" {
			t.Errorf("swept (-want +got):\n%s", diff)
		}
	}
	v, _ := f.d.ended.Load(name)
	end, ok := v.(ended)
	if !ok {
		t.Fatal("the end of the definition was not noted")
	}
	f.d.ended.Store(name, ended{end.prefix, time.Now().Add(time.Hour)})
	sweep("new", "straggler")
	f.d.ended.Store(name, ended{end.prefix, time.Now()})
	sweep("new")
	if _, noted := f.d.ended.Load(name); noted {
		t.Error("the end is still noted")
	}
}
