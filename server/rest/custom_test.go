package rest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/control"
	"github.com/plinth-io/plinth/server/rest"
)

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// serveDefinitions runs what serves custom resources until the test ends.
func (h *harness) serveDefinitions() {
	h.t.Helper()
	d, err := control.NewDefinitions(control.Config{
		Client: &clientrest.Config{Host: h.http.URL, QPS: -1}, Store: h.store, Kinds: h.kinds, DeleteAll: h.api.DeleteAll, Logf: h.t.Logf,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	h.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// define creates a definition and returns when it is established.
func (h *harness) define(definition string) {
	h.t.Helper()
	name := h.do("POST", definitions, definition).want(201).get("metadata", "name")
	h.until("established "+name, func() bool { return h.condition(name, "Established") == "True" })
}

// condition is the status of a definition's condition.
func (h *harness) condition(name, condition string) string {
	h.t.Helper()
	a := h.do("GET", definitions+"/"+name, "")
	for i := 0; ; i++ {
		kind := a.get("status", "conditions", fmt.Sprint(i), "type")
		if kind == "" || kind == condition {
			return a.get("status", "conditions", fmt.Sprint(i), "status")
		}
	}
}

func (h *harness) until(what string, ok func() bool) {
	h.t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			h.t.Fatalf("timed out: %s", what)
		}
	}
}

// widgets is testdata/widgets.json for a group of its own.
func widgets(t testing.TB, group string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/widgets.json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "GROUP", group)
}

func TestCustomResources(t *testing.T) {
	onEachDialect(t, rest.Options{}, func(t *testing.T, h *harness) {
		h.t = t
		h.serveDefinitions()
		h.define(widgets(t, "example.com"))
		h.playAll(t, customRows)
	})
}
