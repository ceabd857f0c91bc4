package past

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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
	c, err := New(&clientrest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Changes(t.Context(), Query{}) {
		if !errors.Is(err, ErrNoHistory) || !strings.HasPrefix(err.Error(), server.URL+" has no history") {
			t.Error(err)
		}
	}
	server.Close()
	for _, err := range c.Changes(t.Context(), Query{}) {
		if err == nil || !strings.HasPrefix(err.Error(), "cannot reach "+server.URL) || strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
	}
}

// TestUnknownKind has types that are not served, of which a full name may be one of the past.
func TestUnknownKind(t *testing.T) {
	t.Parallel()
	f := start(t)
	var unknown *UnknownKindError
	for _, text := range []string{"things", "things.example.com", "deployments.example.com"} {
		if _, err := f.c.FindKind(text); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := f.c.FindPastKind(t.Context(), "things"); !errors.As(err, &unknown) {
		t.Errorf("things: %v", err)
	}
	if k, err := f.c.FindPastKind(t.Context(), "things.example.com"); err != nil || k.Name() != "things.example.com" {
		t.Errorf("things.example.com: %v, %v", k, err)
	}
	for text, want := range map[string]string{
		"deploy": "deployments.apps", "deployment": "deployments.apps", "Deployments": "deployments.apps", "deployments.apps": "deployments.apps",
		"deployments.v1.apps": "deployments.apps", "cm": "configmaps", "ns": "namespaces", "crd": "customresourcedefinitions.apiextensions.k8s.io",
	} {
		if k, err := f.c.FindKind(text); err != nil || k.Name() != want {
			t.Errorf("%s: %v, %v", text, k, err)
		}
	}
}
