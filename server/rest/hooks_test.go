package rest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/rest"
)

// hookRecorder records the calls of a Kind's hooks.
type hookRecorder struct {
	mu    sync.Mutex
	trace []string
	held  map[string]int // reservations that are finished with success and not released, by name
	open  int            // reservations that are not finished yet
}

func nameOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return m.GetName()
}

func (k *hookRecorder) note(format string, args ...any) {
	k.trace = append(k.trace, fmt.Sprintf(format, args...))
}

func (k *hookRecorder) begin(verb, name string, refuse bool) (registry.FinishFunc, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if refuse {
		return nil, apierrors.NewBadRequest("none left")
	}
	k.note("%s %s", verb, name)
	k.open++
	return func(_ context.Context, success bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.open--
		k.note("%v", success)
		if success {
			k.held[name]++
		}
	}, nil
}

func (k *hookRecorder) afterDelete(obj runtime.Object, _ *metav1.DeleteOptions) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note("gone %s", nameOf(obj))
	delete(k.held, nameOf(obj))
}

// told is the trace since the last call of told.
func (k *hookRecorder) told() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	trace := strings.Join(k.trace, ", ")
	k.trace = nil
	return trace
}

// hook sets the hooks of resourcequotas.
func (k *hookRecorder) hook(h *harness) {
	k.held = map[string]int{}
	old := h.kinds.Lookup("", "v1", "resourcequotas")
	hooked := *old
	hooked.Hooks.ReserveNew = func(_ context.Context, obj runtime.Object, _ *metav1.CreateOptions) (registry.FinishFunc, error) {
		return k.begin("create", nameOf(obj), strings.Contains(nameOf(obj), "refused"))
	}
	hooked.Hooks.ReserveChanged = func(_ context.Context, obj, _ runtime.Object, _ *metav1.UpdateOptions) (registry.FinishFunc, error) {
		m, _ := meta.Accessor(obj)
		return k.begin("update", nameOf(obj), m.GetLabels()["refused"] != "")
	}
	hooked.Hooks.Release = k.afterDelete
	h.kinds.Replace([]*kind.Kind{old}, []*kind.Kind{&hooked})
}

// forbidLabeled is a validating plugin that refuses objects with the label "forbidden".
type forbidLabeled struct{}

func (forbidLabeled) Handles(op apiadmission.Operation) bool {
	return op == apiadmission.Create || op == apiadmission.Update
}

func (forbidLabeled) Validate(_ context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	if m, err := meta.Accessor(a.GetObject()); err == nil && m.GetLabels()["forbidden"] != "" {
		return apiadmission.NewForbidden(a, errors.New("no"))
	}
	return nil
}

// TestHooks lists the calls of the hooks for each way in which a write can end.
func TestHooks(t *testing.T) {
	h := newHarness(t, rest.Options{Admission: forbidLabeled{}})
	var k hookRecorder
	k.hook(h)
	const all = "/api/v1/namespaces/default/resourcequotas"
	quota := func(meta string) string {
		return `{"kind":"ResourceQuota","apiVersion":"v1","metadata":` + meta + `,"spec":{"hard":{"pods":"1"}}}`
	}
	const merge = "application/merge-patch+json"
	for _, c := range []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"create", "POST", "", quota(`{"name":"a"}`), 201, "create a, true"},
		{"create an object that exists", "POST", "", quota(`{"name":"a"}`), 409, "create a, false"},
		{"create an invalid object", "POST", "", `{"metadata":{"name":"A"}}`, 422, "create A, false"},
		{"create an object that admission refuses", "POST", "", quota(`{"name":"b","labels":{"forbidden":"1"}}`), 403, "create b, false"},
		{"create with a resourceVersion", "POST", "", quota(`{"name":"b","resourceVersion":"7"}`), 500, "create b, false"},
		{"create an object that the hook refuses", "POST", "", quota(`{"name":"refused"}`), 400, ""},
		{"create as a dry run", "POST", "?dryRun=All", quota(`{"name":"b"}`), 201, "create b, true"},
		{"create by apply", "PATCH", "/b?fieldManager=m", quota(`{"name":"b"}`), 201, "create b, true"},
		{"apply again", "PATCH", "/b?fieldManager=m", quota(`{"name":"b","labels":{"a":"b"}}`), 200, "update b, true"},
		{"update", "PUT", "/a", quota(`{"name":"a","labels":{"a":"b"}}`), 200, "update a, true"},
		{"update without a change", "PUT", "/a", quota(`{"name":"a","labels":{"a":"b"}}`), 200, "update a, true"},
		{"update with a stale resourceVersion", "PUT", "/a", quota(`{"name":"a","resourceVersion":"1"}`), 409, ""},
		{"patch", "PATCH", "/a", `{"metadata":{"labels":{"a":"c"}}}`, 200, "update a, true"},
		{"patch as a dry run", "PATCH", "/a?dryRun=All", `{"metadata":{"labels":{"a":"d"}}}`, 200, "update a, true"},
		{"patch an object so that the hook refuses it", "PATCH", "/a", `{"metadata":{"labels":{"refused":"c"}}}`, 400, ""},
		{"patch an object so that admission refuses it", "PATCH", "/a", `{"metadata":{"labels":{"forbidden":"c"}}}`, 403, "update a, false"},
		{"patch an object so that it is invalid", "PATCH", "/a", `{"metadata":{"labels":{"a b":"c"}}}`, 422, "update a, false"},
		{"a patch of the status calls no hook", "PATCH", "/a/status", `{"status":{"used":{"pods":"0"}}}`, 200, ""},
		{"delete as a dry run", "DELETE", "/a?dryRun=All", "", 200, ""},
		{"delete", "DELETE", "/a", "", 200, "gone a"},
		{"delete an absent object", "DELETE", "/a", "", 404, ""},
		{"add a finalizer", "PATCH", "/b", `{"metadata":{"finalizers":["x.io/a"]}}`, 200, "update b, true"},
		{"delete the object that the finalizer keeps", "DELETE", "/b", "", 200, ""},
		{"remove the finalizer as a dry run", "PATCH", "/b?dryRun=All", `{"metadata":{"finalizers":null}}`, 200, "update b, false"},
		{"remove the finalizer", "PATCH", "/b", `{"metadata":{"finalizers":null}}`, 200, "update b, false, gone b"},
		{"create an object with a finalizer", "POST", "", quota(`{"name":"c","finalizers":["x.io/a"]}`), 201, "create c, true"},
		{"delete it, which sets its deletionTimestamp", "DELETE", "/c", "", 200, ""},
		{"remove its finalizer through the status", "PATCH", "/c/status", `{"metadata":{"finalizers":null}}`, 200, "gone c"},
		{"create an object for deletecollection", "POST", "", quota(`{"name":"d"}`), 201, "create d, true"},
		{"deletecollection as a dry run", "DELETE", "?dryRun=All", "", 200, ""},
		{"deletecollection", "DELETE", "", "", 200, "gone d"},
	} {
		contentType := "application/json"
		if c.method == "PATCH" {
			contentType = merge
			if strings.Contains(c.path, "fieldManager") {
				contentType = "application/apply-patch+yaml"
			}
		}
		got := h.do(c.method, all+c.path, c.body, "Content-Type", contentType)
		if told := k.told(); got.code != c.code || told != c.want {
			t.Errorf("%s: %d and %q, want %d and %q: %s", c.name, got.code, told, c.code, c.want, got.body)
		}
	}
	if k.open != 0 || len(k.held) != 0 {
		t.Errorf("%d not finished, held: %v", k.open, k.held)
	}
}

// TestHookRaces lets many clients create, change and delete the same object. Each reservation is
// finished once, and Release is called once for each object that was created and removed.
func TestHookRaces(t *testing.T) {
	const clients, rounds = 8, 5
	onEachDialect(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		var k hookRecorder
		k.hook(h)
		const all = "/api/v1/namespaces/default/resourcequotas"
		var made, gone int
		for range rounds {
			codes := atOnce(clients, func(int) answer {
				return h.do("POST", all, `{"metadata":{"name":"a","finalizers":["x.io/a"]},"spec":{"hard":{"pods":"1"}}}`)
			})
			if codes[0] != 201 || codes[1] != 409 {
				t.Fatalf("created: %v", codes)
			}
			atOnce(clients, func(i int) answer {
				return h.do("PATCH", all+"/a", fmt.Sprintf(`{"metadata":{"labels":{"a":"b%d"}}}`, i), "Content-Type", "application/merge-patch+json")
			})
			h.do("DELETE", all+"/a", "").want(200)
			atOnce(clients, func(int) answer {
				return h.do("PATCH", all+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
			})
			h.do("GET", all+"/a", "").want(404)
		}
		for _, line := range k.trace {
			switch line {
			case "gone a":
				gone++
			case "create a":
				made++
			}
		}
		if gone != rounds || made < rounds || k.open != 0 {
			t.Errorf("%d of %d gone, %d not finished", gone, rounds, k.open)
		}
	})
}
