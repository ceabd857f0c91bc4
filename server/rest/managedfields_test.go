package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestTooLargeWithManagedFields wants an object that is too large only because of its managed
// fields to be stored without them.
func TestTooLargeWithManagedFields(t *testing.T) {
	const room = 4000
	h := newHarnessWith(t, "sqlite://:memory:", sqlstore.Options{MaxValueBytes: room, StateBytes: 1}, rest.Options{})
	labels := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"a-long-name-of-a-label-%d":"x"`, i))
		}
		return cmOf(`"labels":{`+strings.Join(list, ",")+`}`, "")
	}
	const tooLarge = "RequestEntityTooLarge: Request entity too large: "
	h.play("x", []applyStep{
		{"post c as alice", labels(70), 201, "metadata/managedFields="},
		{"put c as alice", labels(71), 200, "metadata/managedFields="},
		{"merge c as alice", `{"metadata":{"labels":{"b":"1"}}}`, 200, "metadata/managedFields=; metadata/labels/b=1"},
		{"put c as alice", labels(1), 200, "metadata/labels/b="},
		{"merge c as alice", `{"metadata":{"labels":{"b":"1"}}}`, 200, "managers="}, // until the first apply
		{"apply c as alice", cmOf("", `"data":{"k":"1"}`), 200, "managers=alice Apply v1 | before-first-apply Update v1"},
		{"delete c", "", 200, "kind=Status"},
	})
	for _, code := range []int{http.StatusCreated, http.StatusOK} {
		if a := h.doStep("x", applyStep{do: "apply c as alice", body: labels(70)}).want(413); !strings.HasPrefix(a.failure(), tooLarge) {
			t.Errorf("apply: %s", a.body)
		}
		h.doStep("x", applyStep{do: "apply c as alice", body: labels(2)}).want(code)
	}
	if a := h.doStep("x", applyStep{do: "put c as alice", body: labels(200)}).want(413); !strings.HasPrefix(a.failure(), tooLarge) {
		t.Errorf("put: %s", a.body)
	}
}

// TestManagerOfUserAgent: a request without a fieldManager has one that is computed from its
// User-Agent.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers
func TestManagerOfUserAgent(t *testing.T) {
	h := newHarness(t, rest.Options{})
	for i, row := range []struct{ agent, manager string }{
		{"kubectl/v1.33.0 (linux/amd64) kubernetes/1234567", "kubectl"},
		{"curl", "curl"},
		{"Mozilla/5.0 (X11; Linux)", "Mozilla"},
		{"two words/1", "two words"},
		{"/1.0", "unknown"},
		{"", "unknown"},
		{"a\tb\u00e9\u200b/1", "ab\u00e9"},
		{strings.Repeat("x", 127) + "\u00e9y/1", strings.Repeat("x", 127)},
		{strings.Repeat("x", 200), strings.Repeat("x", 128)},
	} {
		body := strings.Replace(cmOf("", `"data":{"k":"1"}`), `"name":"c"`, fmt.Sprintf(`"generateName":"a%d-"`, i), 1)
		a := h.do("POST", configMaps, body, "User-Agent", row.agent).want(201)
		if got, want := a.tell("managers", ""), row.manager+" Update v1"; got != want {
			t.Errorf("agent %q: %q, want %q", row.agent, got, want)
		}
	}
}
