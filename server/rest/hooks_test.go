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
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/rest"
)

// taker counts what the hooks of a Kind take and give back.
type taker struct {
	mu    sync.Mutex
	trace []string
	held  map[string]int // finished with success and not given back, by name
	open  int            // not finished yet
}

func nameOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return m.GetName()
}

func (k *taker) note(format string, args ...any) {
	k.trace = append(k.trace, fmt.Sprintf(format, args...))
}

func (k *taker) begin(verb, name string, refuse bool) (registry.FinishFunc, error) {
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

func (k *taker) afterDelete(obj runtime.Object, _ *metav1.DeleteOptions) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note("gone %s", nameOf(obj))
	delete(k.held, nameOf(obj))
}

// told is the trace since it was asked last.
func (k *taker) told() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	trace := strings.Join(k.trace, ", ")
	k.trace = nil
	return trace
}

// hook gives resourcequotas the hooks.
func (k *taker) hook(h *harness) {
	k.held = map[string]int{}
	old := h.kinds.Lookup("", "v1", "resourcequotas")
	hooked := *old
	hooked.BeginCreate = func(_ context.Context, obj runtime.Object, _ *metav1.CreateOptions) (registry.FinishFunc, error) {
		return k.begin("create", nameOf(obj), strings.Contains(nameOf(obj), "refused"))
	}
	hooked.BeginUpdate = func(_ context.Context, obj, _ runtime.Object, _ *metav1.UpdateOptions) (registry.FinishFunc, error) {
		m, _ := meta.Accessor(obj)
		return k.begin("update", nameOf(obj), m.GetLabels()["refused"] != "")
	}
	hooked.AfterDelete = k.afterDelete
	h.kinds.Replace([]*kind.Kind{old}, []*kind.Kind{&hooked})
}

// doorman refuses objects whose label says so when all else is done.
type doorman struct{}

func (doorman) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

func (doorman) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if m, err := meta.Accessor(a.GetObject()); err == nil && m.GetLabels()["forbidden"] != "" {
		return admission.NewForbidden(a, errors.New("no"))
	}
	return nil
}

// TestHooks says of each way in which a write can end what the hooks hear of it.
func TestHooks(t *testing.T) {
	h := newHarness(t, rest.Options{Admission: doorman{}})
	var k taker
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
		{"create what is there", "POST", "", quota(`{"name":"a"}`), 409, "create a, false"},
		{"create what is not valid", "POST", "", `{"metadata":{"name":"A"}}`, 422, "create A, false"},
		{"create what admission refuses", "POST", "", quota(`{"name":"b","labels":{"forbidden":"1"}}`), 403, "create b, false"},
		{"create with a version", "POST", "", quota(`{"name":"b","resourceVersion":"7"}`), 500, "create b, false"},
		{"create what there is nothing for", "POST", "", quota(`{"name":"refused"}`), 400, ""},
		{"create dry", "POST", "?dryRun=All", quota(`{"name":"b"}`), 201, "create b, true"},
		{"create by apply", "PATCH", "/b?fieldManager=m", quota(`{"name":"b"}`), 201, "create b, true"},
		{"apply again", "PATCH", "/b?fieldManager=m", quota(`{"name":"b","labels":{"a":"b"}}`), 200, "update b, true"},
		{"update", "PUT", "/a", quota(`{"name":"a","labels":{"a":"b"}}`), 200, "update a, true"},
		{"update to the same", "PUT", "/a", quota(`{"name":"a","labels":{"a":"b"}}`), 200, "update a, true"},
		{"update an old version", "PUT", "/a", quota(`{"name":"a","resourceVersion":"1"}`), 409, ""},
		{"patch", "PATCH", "/a", `{"metadata":{"labels":{"a":"c"}}}`, 200, "update a, true"},
		{"patch dry", "PATCH", "/a?dryRun=All", `{"metadata":{"labels":{"a":"d"}}}`, 200, "update a, true"},
		{"patch what there is nothing for", "PATCH", "/a", `{"metadata":{"labels":{"refused":"c"}}}`, 400, ""},
		{"patch what admission refuses", "PATCH", "/a", `{"metadata":{"labels":{"forbidden":"c"}}}`, 403, "update a, false"},
		{"patch to what is not valid", "PATCH", "/a", `{"metadata":{"labels":{"a b":"c"}}}`, 422, "update a, false"},
		{"status takes nothing", "PATCH", "/a/status", `{"status":{"used":{"pods":"0"}}}`, 200, ""},
		{"delete dry", "DELETE", "/a?dryRun=All", "", 200, ""},
		{"delete", "DELETE", "/a", "", 200, "gone a"},
		{"delete what is not there", "DELETE", "/a", "", 404, ""},
		{"a finalizer", "PATCH", "/b", `{"metadata":{"finalizers":["x.io/a"]}}`, 200, "update b, true"},
		{"holds it", "DELETE", "/b", "", 200, ""},
		{"a dry run lets nothing go", "PATCH", "/b?dryRun=All", `{"metadata":{"finalizers":null}}`, 200, "update b, false"},
		{"letting it go", "PATCH", "/b", `{"metadata":{"finalizers":null}}`, 200, "update b, false, gone b"},
		{"another", "POST", "", quota(`{"name":"c","finalizers":["x.io/a"]}`), 201, "create c, true"},
		{"is marked", "DELETE", "/c", "", 200, ""},
		{"and let go through its status", "PATCH", "/c/status", `{"metadata":{"finalizers":null}}`, 200, "gone c"},
		{"one of many", "POST", "", quota(`{"name":"d"}`), 201, "create d, true"},
		{"dry", "DELETE", "?dryRun=All", "", 200, ""},
		{"with all others", "DELETE", "", "", 200, "gone d"},
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

// TestHookRaces has many create, change and delete the same objects: each begin is finished
// once, and of each object that was made and is gone the hook is told once.
func TestHookRaces(t *testing.T) {
	const clients, rounds = 8, 5
	onEachDialect(t, rest.Options{}, func(t *testing.T, h *harness) {
		var k taker
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
