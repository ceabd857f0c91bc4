package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/rest"
)

// atOnce runs n clients and gives the codes of their last answers, sorted.
func atOnce(n int, client func(i int) answer) (codes []int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			a := client(i)
			mu.Lock()
			defer mu.Unlock()
			codes = append(codes, a.code)
		}()
	}
	all.Wait()
	slices.Sort(codes)
	return codes
}

// deletions counts the DELETED events of a resource in a namespace.
func (h *harness) deletions(namespace, resource string) (n int) {
	h.t.Helper()
	events := (&script{harness: h, ns: namespace, start: 1}).watched(resource)
	for _, e := range events {
		if strings.HasPrefix(e, `{"type":"DELETED"`) {
			n++
		}
	}
	return n
}

// TestDeletionRaces lets several clients delete one object: it goes once.
func TestDeletionRaces(t *testing.T) {
	const clients = 12
	onEachDialect(t, rest.Options{}, func(t *testing.T, h *harness) {
		h.do("POST", configMaps, configMap("first", "1")).want(201)
		t.Run("owners of finalizers", func(t *testing.T) {
			h := *h
			h.t = t
			h.finalizersAtOnce(clients)
		})
		t.Run("the same delete", func(t *testing.T) {
			h := *h
			h.t = t
			path := "/api/v1/namespaces/same/configmaps"
			h.do("POST", path, configMap("a", "1")).want(201)
			codes := atOnce(clients, func(int) answer { return h.do("DELETE", path+"/a", "") })
			if codes[0] != 200 || codes[1] != 404 || codes[clients-1] != 404 {
				t.Errorf("codes %v, want one 200 and 404s", codes)
			}
			if n := h.deletions("same", "configmaps"); n != 1 {
				t.Errorf("deleted %d times", n)
			}
		})
		t.Run("a forced delete", func(t *testing.T) {
			h := *h
			h.t = t
			path := "/api/v1/namespaces/forced/pods"
			h.do("POST", path, onNode).want(201)
			codes := atOnce(clients, func(int) answer { return h.do("DELETE", path+"/a?gracePeriodSeconds=0", "") })
			if codes[0] != 200 || slices.ContainsFunc(codes, func(c int) bool { return c != 200 && c != 404 }) {
				t.Errorf("codes %v, want 200s and 404s", codes)
			}
			if n := h.deletions("forced", "pods"); n != 1 {
				t.Errorf("deleted %d times", n)
			}
		})
	})
}

// finalizersAtOnce has an object that is being deleted, each of whose finalizers has an
// owner who takes it away.
func (h *harness) finalizersAtOnce(n int) {
	h.t.Helper()
	path := "/api/v1/namespaces/finalizers/configmaps"
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"x.io/%d"`, i))
	}
	h.do("POST", path, `{"metadata":{"name":"a","finalizers":[`+strings.Join(all, ",")+`]}}`).want(201)
	h.do("DELETE", path+"/a", "").want(200)
	codes := atOnce(n, func(i int) answer {
		for {
			a := h.do("GET", path+"/a", "")
			if a.code != 200 {
				return a
			}
			body := strings.Replace(a.body, all[i]+",", "", 1)
			if body == a.body {
				body = strings.NewReplacer(","+all[i], "", `[`+all[i]+`]`, `[]`).Replace(a.body)
			}
			if a = h.do("PUT", path+"/a", body); a.code != 409 {
				return a
			}
		}
	})
	if codes[0] != 200 || codes[n-1] != 200 {
		h.t.Errorf("codes %v, want 200s", codes)
	}
	h.do("GET", path+"/a", "").want(404)
	if got := h.deletions("finalizers", "configmaps"); got != 1 {
		h.t.Errorf("deleted %d times", got)
	}
}

// TestDeleteOptionsOfClients sends DeleteOptions as client-go does, in each encoding.
func TestDeleteOptionsOfClients(t *testing.T) {
	h := newHarness(t, rest.Options{})
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(media, func(t *testing.T) {
			clients, err := kubernetes.NewForConfig(&clientrest.Config{
				Host: h.http.URL, ContentConfig: clientrest.ContentConfig{ContentType: media},
			})
			if err != nil {
				t.Fatal(err)
			}
			maps := clients.CoreV1().ConfigMaps("default")
			h.do("POST", configMaps, configMap("a", "1")).want(201)
			wrong, foreground := types.UID("x"), metav1.DeletePropagationForeground
			err = maps.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
			if err == nil || !strings.Contains(err.Error(), "the UID in the precondition (x)") {
				t.Errorf("a wrong uid: %v", err)
			}
			if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Error(err)
			}
			if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				t.Error(err)
			}
			if a := h.do("GET", configMaps+"/a", "").want(200); a.get("metadata", "finalizers") != `["foregroundDeletion"]` {
				t.Errorf("foreground: %s", a.body)
			}
			background := metav1.DeletePropagationBackground
			err = maps.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{FieldSelector: "metadata.name=a"})
			if err != nil {
				t.Error(err)
			}
			h.do("GET", configMaps+"/a", "").want(404)
		})
	}
}
