package lister

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/sqlstore"
)

// put stores a ConfigMap, JSON, in a namespace.
func put(t *testing.T, store *sqlstore.Store, namespace, name, value string) {
	t.Helper()
	c := sqlstore.Change{Key: followed + namespace + "/" + name, Value: []byte(value)}
	if e := store.Get(c.Key); e != nil {
		c.Expect = e.Revision
	}
	if _, err := store.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func configMap(namespace, name string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":%q}}`, name, namespace)
}

// client-go's listers find what the store has, without waiting for anything.
func TestListers(t *testing.T) {
	store := openStore(t, sqlstore.Options{})
	maps := corelisters.NewConfigMapLister(New[corev1.ConfigMap](store, followed))
	if _, err := maps.ConfigMaps("a").Get("one"); !apierrors.IsNotFound(err) {
		t.Errorf("before it is stored: %v", err)
	}
	for _, at := range [][2]string{{"a", "one"}, {"a", "two"}, {"ab", "three"}} {
		put(t, store, at[0], at[1], configMap(at[0], at[1]))
	}
	if one, err := maps.ConfigMaps("a").Get("one"); err != nil || one.Name != "one" || one.Namespace != "a" {
		t.Errorf("%v, %v", one, err)
	}
	names := func(found []*corev1.ConfigMap, err error) (names []string) {
		if err != nil {
			t.Error(err)
		}
		for _, m := range found {
			names = append(names, m.Namespace+"/"+m.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"a/one", "a/two", "ab/three"}, names(maps.List(labels.Everything()))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a/one", "a/two"}, names(maps.ConfigMaps("a").List(labels.Everything()))); diff != "" {
		t.Error(diff)
	}
	keys, err := New[corev1.ConfigMap](store, followed).IndexKeys(cache.NamespaceIndex, "a")
	if diff := cmp.Diff([]string{"a/one", "a/two"}, keys); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := New[corev1.ConfigMap](store, followed).ByIndex("color", "a"); err == nil {
		t.Error("an index that is not there is no error")
	}
}

// As long as somebody has an object it is decoded once; then its memory is free.
func TestDecodeWhileUsed(t *testing.T) {
	store := openStore(t, sqlstore.Options{})
	put(t, store, "a", "one", configMap("a", "one"))
	e := store.Get(followed + "a/one")
	decode := func() *corev1.ConfigMap {
		object, err := DecodeWhileUsed[corev1.ConfigMap](e)
		if err != nil || object.Name != "one" {
			t.Fatalf("%v, %v", object, err)
		}
		return object
	}
	first := decode()
	if decode() != first {
		t.Error("decoded twice")
	}
	freed := make(chan struct{})
	runtime.AddCleanup(first, func(chan<- struct{}) { close(freed) }, nil)
	runtime.KeepAlive(first)
	first = nil
	runtime.GC()
	select {
	case <-freed:
	case <-time.After(time.Minute):
		t.Fatal("nobody has the object, and it is not freed")
	}
	decode()
}

// An object is decoded once for each of its versions, and shared; DecodeAnew's is the caller's own.
func TestDecode(t *testing.T) {
	store := openStore(t, sqlstore.Options{})
	put(t, store, "a", "one", configMap("a", "one"))
	first, again := Get[corev1.ConfigMap](store, followed, "a/one"), Get[corev1.ConfigMap](store, followed, "a/one")
	if first == nil || first != again {
		t.Errorf("%p and %p are not the same object", first, again)
	}
	own, err := DecodeAnew[corev1.ConfigMap](store.Get(followed + "a/one"))
	if err != nil || own == first {
		t.Errorf("the caller's own is shared: %v", err)
	}
	put(t, store, "a", "one", configMap("a", "one"))
	if changed := Get[corev1.ConfigMap](store, followed, "a/one"); changed == first {
		t.Error("a new version is the old object")
	}
}

// An object that cannot be read is left out of lists, and an error by its name.
func TestSpoiledObject(t *testing.T) {
	store := openStore(t, sqlstore.Options{})
	put(t, store, "a", "good", configMap("a", "good"))
	put(t, store, "a", "spoiled", `{"metadata":{"name":7}}`)
	indexer := New[corev1.ConfigMap](store, followed)
	if all, some := indexer.List(), All[corev1.ConfigMap](store, followed); len(all) != 1 || len(some) != 1 {
		t.Errorf("%d and %d objects are listed", len(all), len(some))
	}
	if _, there, err := indexer.GetByKey("a/spoiled"); there || err == nil {
		t.Errorf("there: %v, error %v", there, err)
	}
	if Get[corev1.ConfigMap](store, followed, "a/spoiled") != nil {
		t.Error("Get returns it")
	}
}
