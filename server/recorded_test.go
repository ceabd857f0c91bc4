package server

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRecordedLeases plays the conversation with kube-apiserver 1.33 in
// testdata/recorded/leases.txt, about Leases and SelfSubjectReviews: block by block a request,
// and below "=>" the status and the body without what is new each time.
func TestRecordedLeases(t *testing.T) {
	onEachDialect(t, Config{}, func(t *testing.T, s, _ *Server) {
		client := admin(t, s)
		do(t, client, "POST", s.URL()+"/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"leases"}}`)
		text, err := os.ReadFile("testdata/recorded/leases.txt")
		must(t, err)
		for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n----\n") {
			name, _, _ := strings.Cut(block, "\n")
			t.Run(strings.TrimPrefix(name, "# "), func(t *testing.T) { replay(t, s, client, block) })
		}
	})
}

func replay(t *testing.T, s *Server, client *http.Client, block string) {
	request, answer, _ := strings.Cut(block, "\n=> ")
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	method, path, _ := strings.Cut(lines[1], " ")
	if body == "(no body)" {
		body = ""
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	for _, line := range lines[2:] {
		key, value, _ := strings.Cut(line, ": ")
		req.Header.Set(key, value)
	}
	resp, err := client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	must(t, err)
	code, want, _ := strings.Cut(answer, "\n")
	if code != strconv.Itoa(resp.StatusCode) {
		t.Errorf("status %d, want %s: %s", resp.StatusCode, code, got)
	}
	if diff := cmp.Diff(lasting(t, []byte(want)), lasting(t, got)); diff != "" {
		t.Error(diff)
	}
}

// lasting decodes a body and takes out what is new each time.
func lasting(t *testing.T, body []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	forget(v)
	return v
}

func forget(v any) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			switch key {
			case "resourceVersion", "creationTimestamp", "managedFields":
				delete(x, key)
			case "uid":
				if value != "7" { // that of the user
					delete(x, key)
				}
			}
			forget(value)
		}
	case []any:
		for _, value := range x {
			forget(value)
		}
	}
}
