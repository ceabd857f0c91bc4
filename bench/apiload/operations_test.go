package apiload

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"
)

// clientsOf returns two clients of a handler.
func clientsOf(t *testing.T, handler http.HandlerFunc) Clients {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	clients, err := Dial(t.Context(), &clientrest.Config{Host: s.URL}, 2, "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clients.Close)
	return clients
}

// TestLists lists three objects, on two pages of which the second has one. A list that has others is an error.
func TestLists(t *testing.T) {
	clients := clientsOf(t, func(w http.ResponseWriter, r *http.Request) {
		objects, next := 3, ""
		if query := r.URL.Query(); query.Has("limit") {
			if objects, next = 2, "more"; query.Get("continue") == "more" {
				objects, next = 1, ""
			}
		}
		fmt.Fprintf(w, `{"metadata":{"continue":%q},"items":[%s]}`, next, strings.Repeat(`{"sent":"1"}`, objects))
	})
	for objects, right := range map[int]bool{2: false, 3: true} {
		pages := clients.Pages("/", 2, objects)
		var err error
		for range 4 {
			if err = pages(t.Context(), 0); err != nil {
				break
			}
		}
		if (err == nil) != right {
			t.Errorf("%d objects in pages: %v", objects, err)
		}
		if err := clients.List("/", ConfigMaps, objects)(t.Context(), 0); (err == nil) != right {
			t.Errorf("%d objects in a list: %v", objects, err)
		}
	}
}

// TestChangeOneField reads an object once, and sends it with another number each time.
func TestChangeOneField(t *testing.T) {
	object, requests := string(ConfigMap("a", 0, 0)), []string{}
	clients := clientsOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPut {
			object = string(body)
		}
		if r.URL.Path != "/" {
			requests = append(requests, fmt.Sprint(r.Method, r.URL.Path, IntField(body, "n")))
		}
		_, _ = io.WriteString(w, object)
	})
	change := clients.ChangeOneField(2, func(worker int) string { return fmt.Sprint("/cm-", worker) })
	for range 2 {
		if err := change(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"GET/cm-10", "PUT/cm-11", "PUT/cm-12"}; !slices.Equal(requests, want) {
		t.Errorf("requests are %v", requests)
	}
}
