package rest_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestStoredVersion: an object that another release has stored in another version comes in the version that is asked
// for, wherever it is read, and a write stores it in today's.
func TestStoredVersion(t *testing.T) {
	h := newHarness(t, rest.Options{})
	const scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	const old = `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"old","namespace":"default","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},` +
		`"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web","apiVersion":"apps/v1"},"maxReplicas":3,"targetCPUUtilizationPercentage":70},"status":{"currentReplicas":0,"desiredReplicas":0}}`
	before := h.store.Revision()
	if _, err := h.store.Commit(t.Context(), sqlstore.Change{Key: "/registry/autoscaling/horizontalpodautoscalers/default/old", Value: []byte(old)}); err != nil {
		t.Fatal(err)
	}
	const utilization = `"averageUtilization":70`
	check := func(what, body, apiVersion string) {
		t.Helper()
		if !strings.Contains(body, utilization) || strings.Contains(body, "autoscaling/v1\"") || !strings.Contains(body, apiVersion) {
			t.Errorf("%s: %s", what, body)
		}
	}
	check("get", h.do("GET", scalers+"/old", "").want(200).body, `"apiVersion":"autoscaling/v2"`)
	list := h.do("GET", scalers, "").want(200)
	check("list", list.body, `"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2"`)
	if strings.Count(list.body, `"kind":"HorizontalPodAutoscaler`) != 1 {
		t.Errorf("an item of the list has a kind: %s", list.body)
	}
	_, events := h.stream(scalers+"?watch=1&timeoutSeconds=20&resourceVersion="+strconv.FormatInt(before, 10), "", 1)
	check("watch", events[0].body, `"apiVersion":"autoscaling/v2"`)
	if body := h.do("GET", strings.Replace(scalers, "v2", "v1", 1)+"/old", "").want(200).body; !strings.Contains(body, `"targetCPUUtilizationPercentage":70`) {
		t.Errorf("get in v1: %s", body)
	}
	h.do(http.MethodPatch, scalers+"/old", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json").want(200)
	check("what is stored after a write", string(h.store.Get("/registry/autoscaling/horizontalpodautoscalers/default/old").Value), `"apiVersion":"autoscaling/v2"`)
}
