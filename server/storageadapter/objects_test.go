package storageadapter_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/storageadapter"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// TestRegistry has upstream's own registry work on each dialect. Two of them are on one
// database where that is possible, so that each finds what the other has written.
func TestRegistry(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		var all []*registry.Store
		for range d.Servers {
			all = append(all, newRegistry(t, dsn))
		}
		testObjects(t, all[0], all[len(all)-1])
		testRaces(t, all)
	})
}

func newRegistry(t *testing.T, dsn string) *registry.Store {
	store := storetest.Open(t, dsn, sqlstore.Options{})
	kinds := builtin.Kinds(builtin.Options{})
	var configMaps *kind.Kind
	for _, k := range kinds {
		if k.Resource == "configmaps" {
			configMaps = k
		}
	}
	r := &registry.Store{
		NewFunc:                   func() runtime.Object { return &api.ConfigMap{} },
		NewListFunc:               func() runtime.Object { return &api.ConfigMapList{} },
		DefaultQualifiedResource:  api.Resource("configmaps"),
		SingularQualifiedResource: api.Resource("configmap"),
		CreateStrategy:            configMaps.Create,
		UpdateStrategy:            configMaps.Update,
		DeleteStrategy:            configMaps.Delete,
		ReturnDeletedObject:       true,
		TableConvertor:            apirest.NewDefaultTableConvertor(api.Resource("configmaps")),
	}
	if err := r.CompleteWithOptions(&generic.StoreOptions{RESTOptions: storageadapter.New(store, func(schema.GroupResource) *kind.Kind { return configMaps })}); err != nil {
		t.Fatal(err)
	}
	return r
}

func inDefault(t *testing.T) context.Context {
	ctx := apirequest.WithRequestInfo(t.Context(), &apirequest.RequestInfo{APIVersion: "v1", Resource: "configmaps"})
	return apirequest.WithNamespace(ctx, "default")
}

func configMap(name string, data map[string]string) *api.ConfigMap {
	return &api.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"name": name}}, Data: data}
}

// increment adds one to a number in the object.
func increment(ctx context.Context, r *registry.Store, name string, on *storage.Preconditions) (*api.ConfigMap, error) {
	key, err := r.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &api.ConfigMap{}
	err = r.Storage.GuaranteedUpdate(ctx, key, out, false, on, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		c := obj.(*api.ConfigMap)
		n, err := strconv.Atoi(c.Data["n"])
		c.Data["n"] = strconv.Itoa(n + 1)
		return c, err
	}), false, nil)
	return out, err
}

// testObjects writes through one registry and reads through the other.
func testObjects(t *testing.T, one, other *registry.Store) {
	ctx := inDefault(t)
	obj, err := one.Create(ctx, configMap("a", map[string]string{"n": "1"}), apirest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made := obj.(*api.ConfigMap)
	if obj, err = other.Get(ctx, "a", &metav1.GetOptions{}); err != nil || obj.(*api.ConfigMap).ResourceVersion != made.ResourceVersion {
		t.Fatalf("got %v %v, made %v", obj, err, made)
	}
	if _, err := other.Create(ctx, configMap("a", nil), apirest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	if _, err := other.Create(ctx, configMap("b", nil), apirest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	changed, err := increment(ctx, other, "a", storage.NewUIDPreconditions(string(made.UID)))
	if err != nil || changed.Data["n"] != "2" || changed.ResourceVersion == made.ResourceVersion {
		t.Fatalf("changed: %v %v", changed, err)
	}
	_, err = increment(ctx, one, "a", storage.NewUIDPreconditions("other"))
	if !storage.IsInvalidObj(err) || !strings.Contains(err.Error(), "Key: /registry/configmaps/default/a,") {
		t.Errorf("another object was changed: %v", err)
	}
	if _, err := increment(ctx, one, "none", nil); !storage.IsNotFound(err) {
		t.Errorf("changed what there is not: %v", err)
	}
	testDryRun(t, one, changed)
	list, err := one.List(ctx, &internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"name": "a"})})
	if items := list.(*api.ConfigMapList).Items; err != nil || len(items) != 1 || items[0].Data["n"] != "2" {
		t.Errorf("listed %v %v", items, err)
	}
	testDelete(t, one, other, changed)
}

// testDryRun has an update show what it would store.
func testDryRun(t *testing.T, r *registry.Store, last *api.ConfigMap) {
	ctx := inDefault(t)
	next := last.DeepCopy()
	next.Data["n"] = "7"
	obj, _, err := r.Update(ctx, "a", apirest.DefaultUpdatedObjectInfo(next), apirest.ValidateAllObjectFunc, apirest.ValidateAllObjectUpdateFunc,
		false, &metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || obj.(*api.ConfigMap).Data["n"] != "7" || obj.(*api.ConfigMap).ResourceVersion != last.ResourceVersion {
		t.Errorf("a dry run gave %v %v", obj, err)
	}
	obj, err = r.Get(ctx, "a", &metav1.GetOptions{})
	if err != nil || obj.(*api.ConfigMap).Data["n"] != last.Data["n"] {
		t.Errorf("a dry run stored %v %v", obj, err)
	}
}

func testDelete(t *testing.T, one, other *registry.Store, last *api.ConfigMap) {
	ctx := inDefault(t)
	dry := &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if obj, _, err := one.Delete(ctx, "a", apirest.ValidateAllObjectFunc, dry); err != nil || obj.(*api.ConfigMap).ResourceVersion != last.ResourceVersion {
		t.Errorf("a dry run of the deletion: %v %v", obj, err)
	}
	stale := metav1.NewPreconditionDeleteOptions("other")
	if _, _, err := one.Delete(ctx, "a", apirest.ValidateAllObjectFunc, stale); !apierrors.IsConflict(err) {
		t.Errorf("another object was deleted: %v", err)
	}
	gone, deleted, err := one.Delete(ctx, "a", apirest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil || !deleted || gone.(*api.ConfigMap).ResourceVersion == last.ResourceVersion {
		t.Fatalf("deleted %v %v %v", gone, deleted, err)
	}
	if _, err := other.Get(ctx, "a", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
	if _, _, err := other.Delete(ctx, "a", apirest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
}

// testRaces has many change the same object, of which no change may be lost.
func testRaces(t *testing.T, all []*registry.Store) {
	ctx := inDefault(t)
	if _, err := all[0].Create(ctx, configMap("race", map[string]string{"n": "0"}), apirest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const writers, writes = 6, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range writes {
				if _, err := increment(ctx, all[w%len(all)], "race", nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	obj, err := all[0].Get(ctx, "race", &metav1.GetOptions{})
	if err != nil || obj.(*api.ConfigMap).Data["n"] != strconv.Itoa(writers*writes) {
		t.Errorf("after %d changes: %v %v", writers*writes, obj, err)
	}
}
