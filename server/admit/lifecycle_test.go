package admit_test

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
	"k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admit"
	"github.com/plinth-io/plinth/sqlstore"
)

func openStore(t testing.TB) *sqlstore.Store {
	t.Helper()
	log, err := dialects.Open(t.Context(), "sqlite://:memory:", dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), log, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

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

func attributes(op admission.Operation, gvk schema.GroupVersionKind, gvr schema.GroupVersionResource, ns, name string) admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, gvk, ns, name, gvr, "", op, nil, false, nil)
}

func TestLifecycle(t *testing.T) {
	store := openStore(t)
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
		a    admission.Attributes
		code int32 // 0: admitted
		text string
	}{
		{"create", attributes(admission.Create, configMap, configMaps, "here", "a"), 0, ""},
		{"create in missing", attributes(admission.Create, configMap, configMaps, "nowhere", "a"), http.StatusNotFound,
			`namespaces "nowhere" not found`},
		{"update in missing", attributes(admission.Update, configMap, configMaps, "nowhere", "a"), http.StatusNotFound,
			`namespaces "nowhere" not found`},
		{"delete in missing", attributes(admission.Delete, configMap, configMaps, "nowhere", "a"), 0, ""},
		{"create in terminating", attributes(admission.Create, configMap, configMaps, "going", "a"), http.StatusForbidden,
			`configmaps "a" is forbidden: unable to create new content in namespace going because it is being terminated`},
		{"update in terminating", attributes(admission.Update, configMap, configMaps, "going", "a"), 0, ""},
		{"delete in terminating", attributes(admission.Delete, configMap, configMaps, "going", "a"), 0, ""},
		{"review in missing", attributes(admission.Create, review, reviews, "nowhere", ""), 0, ""},
		{"cluster scope", attributes(admission.Create, node, nodes, "", "n"), 0, ""},
		{"create namespace", attributes(admission.Create, namespace, namespaces, "new", "new"), 0, ""},
		{"update terminating namespace", attributes(admission.Update, namespace, namespaces, "going", "going"), 0, ""},
		{"delete namespace", attributes(admission.Delete, namespace, namespaces, "here", "here"), 0, ""},
		{"delete default", attributes(admission.Delete, namespace, namespaces, "default", "default"), http.StatusForbidden,
			`namespaces "default" is forbidden: this namespace may not be deleted`},
		{"delete kube-system", attributes(admission.Delete, namespace, namespaces, "kube-system", "kube-system"), http.StatusForbidden,
			`namespaces "kube-system" is forbidden: this namespace may not be deleted`},
		{"delete kube-public", attributes(admission.Delete, namespace, namespaces, "kube-public", "kube-public"), http.StatusForbidden,
			`namespaces "kube-public" is forbidden: this namespace may not be deleted`},
		{"delete kube-node-lease", attributes(admission.Delete, namespace, namespaces, "kube-node-lease", "kube-node-lease"), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := admit.Chain{admit.NewLifecycle(store)}.Admit(t.Context(), c.a, nil)
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
	store := openStore(t)
	putNamespace(t, store, "going", "Terminating")
	err := admit.NewLifecycle(store).Admit(t.Context(), attributes(admission.Create, configMap, configMaps, "going", "a"), nil)
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
	store := openStore(t)
	l := admit.NewLifecycle(store)
	create := attributes(admission.Create, configMap, configMaps, "a", "x")
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
	if _, err := store.Commit(t.Context(), sqlstore.Tombstone(e)); err != nil {
		t.Fatal(err)
	}
	check("gone", false)
	putNamespace(t, store, "a", "Active")
	check("again", true)
}

// recorder is a plugin that notes when it is asked.
type recorder struct {
	name  string
	op    admission.Operation
	calls *[]string
	err   error
}

func (r *recorder) Handles(op admission.Operation) bool { return op == r.op }

type mutator struct{ recorder }

func (m *mutator) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	*m.calls = append(*m.calls, "admit "+m.name)
	return m.err
}

type validator struct{ recorder }

func (v *validator) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	*v.calls = append(*v.calls, "validate "+v.name)
	return v.err
}

func TestChain(t *testing.T) {
	refusal := errors.New("no")
	for _, c := range []struct {
		name        string
		first       error
		want        []string
		wantRefused bool
	}{
		{"all agree", nil, []string{"admit 1", "admit 3", "validate 2"}, false},
		{"the first refuses", refusal, []string{"admit 1", "validate 2"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []string
			chain := admit.Chain{
				&mutator{recorder{"1", admission.Create, &calls, c.first}},
				&validator{recorder{"2", admission.Create, &calls, nil}},
				&mutator{recorder{"3", admission.Create, &calls, nil}},
				&mutator{recorder{"4", admission.Delete, &calls, nil}},
			}
			a := attributes(admission.Create, configMap, configMaps, "a", "x")
			if err := chain.Admit(t.Context(), a, nil); (err != nil) != c.wantRefused {
				t.Errorf("Admit: %v", err)
			}
			if err := chain.Validate(t.Context(), a, nil); err != nil {
				t.Errorf("Validate: %v", err)
			}
			if diff := cmp.Diff(c.want, calls); diff != "" {
				t.Error(diff)
			}
			for op, want := range map[admission.Operation]bool{admission.Create: true, admission.Delete: true, admission.Update: false} {
				if chain.Handles(op) != want {
					t.Errorf("Handles(%s) = %v", op, !want)
				}
			}
		})
	}
}

func BenchmarkLifecycle(b *testing.B) {
	store := openStore(b)
	for _, name := range []string{"default", "kube-system", "kube-public", "here"} {
		putNamespace(b, store, name, "Active")
	}
	chain := admit.Chain{admit.NewLifecycle(store)}
	a := attributes(admission.Create, configMap, configMaps, "here", "a")
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := chain.Admit(ctx, a, nil); err != nil {
			b.Fatal(err)
		}
	}
}
