package builtin_test

import (
	"testing"

	api "k8s.io/kubernetes/pkg/apis/core"
)

func TestNamespaceEnds(t *testing.T) {
	k := find(t, "", "namespaces")
	ns := &api.Namespace{Spec: api.NamespaceSpec{Finalizers: []api.FinalizerName{api.FinalizerKubernetes}}}
	if held := k.Hooks.MarkTerminating(ns); !held || ns.Status.Phase != api.NamespaceTerminating {
		t.Errorf("held %v, phase %s", held, ns.Status.Phase)
	}
	if k.Hooks.DeletionDone(t.Context(), "", ns, ns) {
		t.Error("finished with a finalizer in its spec")
	}
	ns.Spec.Finalizers = nil
	if !k.Hooks.DeletionDone(t.Context(), "", ns, ns) || k.Hooks.MarkTerminating(ns) {
		t.Error("not finished without finalizers")
	}
	ns.Finalizers = []string{"example.com/a"}
	if k.Hooks.DeletionDone(t.Context(), "", ns, ns) {
		t.Error("finished with a finalizer in its metadata")
	}
}
