package admission_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

func putNamespace(t testing.TB, store *sqlstore.Store, name, phase string) {
	t.Helper()
	value := `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"` + name + `"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"` + phase + `"}}`
	c := sqlstore.Change{Key: "/registry/core/namespaces/" + name, Value: []byte(value)}
	if e := store.Get(c.Key); e != nil {
		c.Expect = e.Revision
	}
	if _, err := store.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	configMap  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	namespace  = corev1.SchemeGroupVersion.WithKind("Namespace")
)

func attributes(op apiadmission.Operation, gvk schema.GroupVersionKind, gvr schema.GroupVersionResource, ns, name string) apiadmission.Attributes {
	return apiadmission.NewAttributesRecord(nil, nil, gvk, ns, name, gvr, "", op, nil, false, nil)
}

func TestLifecycle(t *testing.T) {
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease", "here"} {
		putNamespace(t, store, name, "Active")
	}
	putNamespace(t, store, "going", "Active")
	putNamespace(t, store, "going", "Terminating")
	review := schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "LocalSubjectAccessReview"}
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "localsubjectaccessreviews"}
	node := corev1.SchemeGroupVersion.WithKind("Node")
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")

	for _, c := range []struct {
		name string
		a    apiadmission.Attributes
		code int32 // 0: admitted
		text string
	}{
		{"create", attributes(apiadmission.Create, configMap, configMaps, "here", "a"), 0, ""},
		{"create in missing", attributes(apiadmission.Create, configMap, configMaps, "nowhere", "a"), http.StatusNotFound,
			`namespaces "nowhere" not found`},
		{"update in missing", attributes(apiadmission.Update, configMap, configMaps, "nowhere", "a"), http.StatusNotFound,
			`namespaces "nowhere" not found`},
		{"delete in missing", attributes(apiadmission.Delete, configMap, configMaps, "nowhere", "a"), 0, ""},
		{"create in terminating", attributes(apiadmission.Create, configMap, configMaps, "going", "a"), http.StatusForbidden,
			`configmaps "a" is forbidden: unable to create new content in namespace going because it is being terminated`},
		{"update in terminating", attributes(apiadmission.Update, configMap, configMaps, "going", "a"), 0, ""},
		{"delete in terminating", attributes(apiadmission.Delete, configMap, configMaps, "going", "a"), 0, ""},
		{"review in missing", attributes(apiadmission.Create, review, reviews, "nowhere", ""), 0, ""},
		{"cluster scope", attributes(apiadmission.Create, node, nodes, "", "n"), 0, ""},
		{"create namespace", attributes(apiadmission.Create, namespace, namespaces, "new", "new"), 0, ""},
		{"update terminating namespace", attributes(apiadmission.Update, namespace, namespaces, "going", "going"), 0, ""},
		{"delete namespace", attributes(apiadmission.Delete, namespace, namespaces, "here", "here"), 0, ""},
		{"delete default", attributes(apiadmission.Delete, namespace, namespaces, "default", "default"), http.StatusForbidden,
			`namespaces "default" is forbidden: this namespace may not be deleted`},
		{"delete kube-system", attributes(apiadmission.Delete, namespace, namespaces, "kube-system", "kube-system"), http.StatusForbidden,
			`namespaces "kube-system" is forbidden: this namespace may not be deleted`},
		{"delete kube-public", attributes(apiadmission.Delete, namespace, namespaces, "kube-public", "kube-public"), http.StatusForbidden,
			`namespaces "kube-public" is forbidden: this namespace may not be deleted`},
		{"delete kube-node-lease", attributes(apiadmission.Delete, namespace, namespaces, "kube-node-lease", "kube-node-lease"), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := admission.Chain{admission.NewLifecycle(store)}.Admit(t.Context(), c.a, nil)
			code, text := int32(0), ""
			var status *apierrors.StatusError
			if errors.As(err, &status) {
				code, text = status.ErrStatus.Code, status.ErrStatus.Message
			} else if err != nil {
				t.Fatalf("error without a status: %v", err)
			}
			if code != c.code || text != c.text {
				t.Errorf("got %d %q, want %d %q", code, text, c.code, c.text)
			}
		})
	}
}

// Clients such as the garbage collector and Deployments' controllers look at the cause.
func TestLifecycleTerminatingCause(t *testing.T) {
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	putNamespace(t, store, "going", "Terminating")
	err := admission.NewLifecycle(store).Admit(t.Context(), attributes(apiadmission.Create, configMap, configMaps, "going", "a"), nil)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Fatalf("error %v has no cause %s", err, corev1.NamespaceTerminatingCause)
	}
	want := []metav1.StatusCause{{Type: "NamespaceTerminating", Message: "namespace going is being terminated", Field: "metadata.namespace"}}
	if diff := cmp.Diff(want, err.(*apierrors.StatusError).ErrStatus.Details.Causes); diff != "" {
		t.Error(diff)
	}
}

// A namespace that was made, deleted and made again is judged by its present state.
func TestLifecycleFollowsChanges(t *testing.T) {
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	l := admission.NewLifecycle(store)
	create := attributes(apiadmission.Create, configMap, configMaps, "a", "x")
	check := func(when string, want bool) {
		t.Helper()
		if err := l.Admit(t.Context(), create, nil); (err == nil) != want {
			t.Errorf("%s: error %v, want admitted %v", when, err, want)
		}
	}
	check("before", false)
	putNamespace(t, store, "a", "Active")
	check("active", true)
	check("active, remembered", true)
	putNamespace(t, store, "a", "Terminating")
	check("terminating", false)
	e := store.Get("/registry/core/namespaces/a")
	if _, err := store.Commit(t.Context(), object.Tombstone(e)); err != nil {
		t.Fatal(err)
	}
	check("gone", false)
	putNamespace(t, store, "a", "Active")
	check("again", true)
}

// recorder is a plugin that notes when it is asked.
type recorder struct {
	name  string
	op    apiadmission.Operation
	calls *[]string
	err   error
}

func (r *recorder) Handles(op apiadmission.Operation) bool { return op == r.op }

type mutator struct{ recorder }

func (m *mutator) Admit(context.Context, apiadmission.Attributes, apiadmission.ObjectInterfaces) error {
	*m.calls = append(*m.calls, "admit "+m.name)
	return m.err
}

type validator struct{ recorder }

func (v *validator) Validate(context.Context, apiadmission.Attributes, apiadmission.ObjectInterfaces) error {
	*v.calls = append(*v.calls, "validate "+v.name)
	return v.err
}

func BenchmarkLifecycle(b *testing.B) {
	store := storetest.Open(b, storetest.Memory, sqlstore.Options{})
	for _, name := range []string{"default", "kube-system", "kube-public", "here"} {
		putNamespace(b, store, name, "Active")
	}
	chain := admission.Chain{admission.NewLifecycle(store)}
	a := attributes(apiadmission.Create, configMap, configMaps, "here", "a")
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := chain.Admit(ctx, a, nil); err != nil {
			b.Fatal(err)
		}
	}
}
