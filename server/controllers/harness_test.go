package controllers_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/controllers"
)

// fixture is an API for controllers to work on.
type fixture struct{ *apitest.API }

func openFixture(t testing.TB) *fixture { return &fixture{apitest.Open(t)} }

var here = cluster.Address{IP: net.IPv4(192, 0, 2, 7), Port: 6443}

// bootstrap creates the objects that every cluster begins with.
func bootstrap(t testing.TB, c *fixture, at cluster.Address) {
	t.Helper()
	made, err := cluster.New(cluster.Config{Client: c.Config, Store: c.Store, Here: at})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// run starts controllers on a bootstrapped cluster and returns a function that stops them.
func run(t testing.TB, c *fixture, config controllers.Config) (stop func()) {
	t.Helper()
	_, stop = runManager(t, c, config)
	return stop
}

// runManager is run, and also returns the manager.
func runManager(t testing.TB, c *fixture, config controllers.Config) (m *controllers.Manager, stop func()) {
	t.Helper()
	config.API, config.Store = controllers.API{Client: c.Config, Kinds: c.Kinds}, c.Store
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	m, err := controllers.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return m, stop
}

func openRunning(t testing.TB, names ...string) *fixture {
	t.Helper()
	c := openFixture(t)
	bootstrap(t, c, here)
	run(t, c, controllers.Config{Controllers: names})
	return c
}

// add creates a ConfigMap that belongs to owners.
func (c *fixture) add(t testing.TB, namespace, name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
	cm, err := c.Client.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func (c *fixture) addNamespace(t testing.TB, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *fixture) remove(t testing.TB, namespace, name string, policy metav1.DeletionPropagation) {
	t.Helper()
	err := c.Client.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *fixture) get(t testing.TB, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	cm, err := c.Client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return cm
}

func (c *fixture) setFinalizers(t testing.TB, namespace, name, list string) {
	t.Helper()
	patch := []byte(`{"metadata":{"finalizers":` + list + `}}`)
	if _, err := c.Client.CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
