package past

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"
)

// TestNoHistory asks a server that is no plinth, and one that does not answer.
func TestNoHistory(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			w.Header().Set("Content-Type", "text/plain")
			http.Error(w, "404 page not found", http.StatusNotFound)
		}
	}))
	defer server.Close()
	c, err := New(&clientrest.Config{Host: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.History.Changes(t.Context(), Query{}) {
		if !errors.Is(err, ErrNoHistory) || !strings.HasPrefix(err.Error(), server.URL+" has no history") {
			t.Error(err)
		}
	}
	server.Close()
	for _, err := range c.History.Changes(t.Context(), Query{}) {
		if err == nil || !strings.HasPrefix(err.Error(), "cannot reach "+server.URL) || strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
	}
}

// TestFutureRevision asks for revisions that are none yet.
func TestFutureRevision(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.create(f.c, "configmaps", configMap("a", ""))
	a, later := f.target("configmaps", "a"), Moment{Revision: 99999999}
	_, got := f.c.History.At(f.Context(), a, later)
	_, blamed := f.c.History.Blame(f.Context(), a, later, View{})
	_, undone := f.c.Reverter.Undo(f.Context(), a, later)
	for _, err := range []error{got, blamed, undone} {
		var future *FutureRevisionError
		if !errors.As(err, &future) || future.Revision != "99999999" {
			t.Error(err)
		}
	}
}

// TestFewerChanges asks for more changes back than there are.
func TestFewerChanges(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.create(f.c, "configmaps", configMap("a", ""))
	a := f.target("configmaps", "a")
	for _, want := range []string{"has only 1 change that is kept", "has only 2 changes that are kept"} {
		if _, err := f.c.History.At(f.Context(), a, Moment{Back: 3}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		f.change(f.c, a, set("k", want))
	}
}

// TestSeveralKinds has several types, and a word that stands for several.
func TestSeveralKinds(t *testing.T) {
	t.Parallel()
	f := start(t)
	kinds, err := f.c.History.FindPastKinds(f.Context(), "cm,all,po")
	f.must(err)
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name())
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) != len(kinds) || !slices.Contains(names, "configmaps") ||
		!slices.Contains(names, "deployments.apps") || slices.Contains(names, "secrets") {
		t.Errorf("the kinds are %q", names)
	}
	for text, want := range map[string]string{"cm,secrets": "write one type", "all": "stands for several types: write one of them, such as "} {
		if _, err := f.c.Kinds.Find(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestUnknownKind has types that are not served, of which a full name may be one of the past.
func TestUnknownKind(t *testing.T) {
	t.Parallel()
	f := start(t)
	var unknown *UnknownKindError
	for _, text := range []string{"things", "things.example.com", "deployments.example.com"} {
		if _, err := f.c.Kinds.Find(text); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := f.c.History.FindPastKind(t.Context(), "things"); !errors.As(err, &unknown) {
		t.Errorf("things: %v", err)
	}
	if k, err := f.c.History.FindPastKind(t.Context(), "things.example.com"); err != nil || k.Name() != "things.example.com" {
		t.Errorf("things.example.com: %v, %v", k, err)
	}
	for text, want := range map[string]string{
		"deploy": "deployments.apps", "deployment": "deployments.apps", "Deployments": "deployments.apps", "deployments.apps": "deployments.apps",
		"deployments.v1.apps": "deployments.apps", "cm": "configmaps", "ns": "namespaces", "crd": "customresourcedefinitions.apiextensions.k8s.io",
	} {
		if k, err := f.c.Kinds.Find(text); err != nil || k.Name() != want {
			t.Errorf("%s: %v, %v", text, k, err)
		}
	}
}

// TestNewKind has a type that is younger than what the client knows of the types.
func TestNewKind(t *testing.T) {
	t.Parallel()
	f := start(t)
	_, err := f.c.Kinds.Find("cm")
	f.must(err)
	other := f.client("")
	f.create(other, "customresourcedefinitions", fleet)
	_, err = other.Kinds.await(t.Context(), "fleets.example.com")
	f.must(err)
	var unknown *UnknownKindError
	if k, err := f.c.Kinds.Find("fleets.example.com"); !errors.As(err, &unknown) {
		t.Fatalf("the client knows the type before it looks again: %v, %v", k, err)
	}
	if k, err := f.c.History.FindPastKind(t.Context(), "fleets.example.com"); err != nil || k.Resource.Version != "v1" || !k.Namespaced {
		t.Errorf("fleets.example.com: %v, %v", k, err)
	}
}
