package rest_test

import (
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
)

// TestDeclaredErrors sends what only declarative validation refuses.
func TestDeclaredErrors(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, true)
	h := newHarness(t, rest.Options{}, nothingStays)
	enabled, err := builtin.ParseEnabled(map[string]string{"lifecycle.k8s.io/v1alpha1": "true"}, builtin.Forward{})
	if err != nil {
		t.Fatal(err)
	}
	h.kinds.Replace(h.kinds.Set().Kinds, builtin.Kinds(builtin.Options{Store: h.store, Client: h.client(), Enabled: enabled}))
	const path = "/apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests"
	const name = "6f5d3a0e-0000-4000-8000-000000000001.x.io"
	request := func(intent string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"target":{"pod":{"name":"a","uid":"6f5d3a0e-0000-4000-8000-000000000001"}},"requester":"x.io/a"` + intent + `}}`
	}
	if a := h.do("POST", path, request("")); a.code != 422 || !strings.Contains(a.body, "spec.intent: Required value") {
		t.Errorf("create: %d %s", a.code, a.body)
	}
	if a := h.do("POST", path, request(`,"intent":"Eviction"`)); a.code != 201 {
		t.Fatalf("create: %d %s", a.code, a.body)
	}
	h.do("PATCH", path+"/"+name, `{"spec":{"requester":"y.io/a"}}`, "Content-Type", "application/merge-patch+json").want(422)
	status := `{"status":{"observedGeneration":0}}`
	if a := h.do("PATCH", path+"/"+name+"/status", status, "Content-Type", "application/merge-patch+json"); a.code != 422 || !strings.Contains(a.body, "status.observedGeneration") {
		t.Errorf("update of the status: %d %s", a.code, a.body)
	}
}
