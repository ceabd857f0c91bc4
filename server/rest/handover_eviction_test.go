package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/rest"
)

const (
	assigned = `{"metadata":{"name":"a","labels":{"app":"a"}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`
	ready    = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	budget   = `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"a"}}}}`
	evict    = `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a"}}`
)

// allowed is a budget's status as its controller sets it.
func allowed(n int) string {
	return fmt.Sprintf(`{"status":{"observedGeneration":1,"disruptionsAllowed":%d,"currentHealthy":%d,"desiredHealthy":1,"expectedPods":%d}}`, n, n+1, n+1)
}

func evictWith(deleteOptions string) string {
	return `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a"},"deleteOptions":` + deleteOptions + `}`
}

const begun = `
	POST pods ` + assigned + `
	201 Pod uid:=metadata.uid
	PATCH pods/a/status ` + ready + `
	200 Pod rv:=metadata.resourceVersion`

// evictionRows have the answers of kube-apiserver.
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
var evictionRows = []namedScript{
	{"without a budget", begun + `
		POST pods/a/eviction ` + evict + `
		201 Status status=Success code=201
		GET pods/a
		200 Pod metadata.deletionTimestamp=* metadata.deletionGracePeriodSeconds=30 status.conditions.1.type=DisruptionTarget status.conditions.1.reason=EvictionByEvictionAPI
		POST pods/a/eviction {"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"a"},"deleteOptions":{"gracePeriodSeconds":0}}
		201 Status
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"a budget that allows one disruption", begun + `
		POST poddisruptionbudgets ` + budget + `
		201 PodDisruptionBudget
		PATCH poddisruptionbudgets/b/status ` + allowed(1) + `
		200 PodDisruptionBudget
		POST pods/a/eviction?dryRun=All ` + evict + `
		201 Status
		GET poddisruptionbudgets/b
		200 PodDisruptionBudget status.disruptionsAllowed=1 status.disruptedPods=
		POST pods/a/eviction ` + evict + `
		201 Status
		GET poddisruptionbudgets/b
		200 PodDisruptionBudget status.disruptionsAllowed=0 status.disruptedPods.a=*
		POST pods {"metadata":{"name":"z","labels":{"app":"a"}},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}
		201 Pod
		PATCH pods/z/status ` + ready + `
		200 Pod
		POST pods/z/eviction {"metadata":{"name":"z"}}
		429 TooManyRequests: Cannot evict pod as it would violate the pod's disruption budget.
		details: causes.0.reason=DisruptionBudget`},
	{"a budget whose status is not observed yet", begun + `
		POST poddisruptionbudgets ` + budget + `
		201 PodDisruptionBudget
		POST pods/a/eviction ` + evict + `
		429 TooManyRequests: Cannot evict pod as it would violate the pod's disruption budget.
		details: retryAfterSeconds=10 causes.0.reason=DisruptionBudget`},
	{"a negative number of allowed disruptions", begun + `
		POST poddisruptionbudgets ` + budget + `
		201 PodDisruptionBudget
		PATCH poddisruptionbudgets/b/status {"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":1,"expectedPods":1}}
		200 PodDisruptionBudget
		POST pods/a/eviction ` + evict + `
		429 TooManyRequests: Cannot evict pod as it would violate the pod's disruption budget.`},
	{"two budgets", begun + `
		POST poddisruptionbudgets ` + budget + `
		201 PodDisruptionBudget
		POST poddisruptionbudgets ` + strings.Replace(budget, `"b"`, `"c"`, 1) + `
		201 PodDisruptionBudget
		POST pods/a/eviction ` + evict + `
		500 : This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.`},
	{"a terminal pod", begun + `
		POST poddisruptionbudgets ` + budget + `
		201 PodDisruptionBudget
		PATCH pods/a/status {"status":{"phase":"Succeeded"}}
		200 Pod
		POST pods/a/eviction ` + evict + `
		201 Status
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"a pending pod", `
		POST poddisruptionbudgets ` + budget + `
		201 PodDisruptionBudget
		POST pods ` + strings.Replace(assigned, `"nodeName":"n1",`, "", 1) + `
		201 Pod
		POST pods/a/eviction ` + evict + `
		201 Status
		GET pods/a
		404 NotFound: pods "a" not found`},
	{"an unready pod of a healthy budget", `
		POST pods ` + assigned + `
		201 Pod
		PATCH pods/a/status {"status":{"phase":"Running"}}
		200 Pod
		POST poddisruptionbudgets ` + budget + `
		201 PodDisruptionBudget
		PATCH poddisruptionbudgets/b/status ` + allowed(0) + `
		200 PodDisruptionBudget
		POST pods/a/eviction ` + evict + `
		201 Status
		GET poddisruptionbudgets/b
		200 PodDisruptionBudget status.disruptionsAllowed=0 status.disruptedPods=`},
	{"preconditions", begun + `
		POST pods/a/eviction ` + evictWith(`{"preconditions":{"uid":"other"}}`) + `
		409 Conflict: Operation cannot be fulfilled on Pod "a": the UID in the precondition (other) does not match the UID in record (${uid}). The object might have been deleted and then recreated
		POST pods/a/eviction ` + evictWith(`{"preconditions":{"resourceVersion":"1"}}`) + `
		409 Conflict: Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${rv}). The object might have been modified
		POST pods/a/eviction ` + evictWith(`{"preconditions":{"uid":"${uid}","resourceVersion":"${rv}"}}`) + `
		201 Status`},
	{"dry run", begun + `
		POST pods/a/eviction ` + evictWith(`{"dryRun":["All"]}`) + `
		201 Status
		GET pods/a
		200 Pod metadata.resourceVersion=${rv}`},
	{"bodies", begun + `
		POST pods/a/eviction {"metadata":{"name":"b"}}
		400 BadRequest: name in URL does not match name in Eviction object
		POST pods/none/eviction {"metadata":{"name":"none"}}
		404 NotFound: pods "none" not found
		POST pods/a/eviction {"apiVersion":"policy/v2","kind":"Eviction","metadata":{"name":"a"}}
		400 BadRequest: Eviction in version "v2" cannot be handled as a Eviction: no kind "Eviction" is registered for version "policy/v2" in scheme "pkg/runtime/scheme.go:111"
		DELETE pods/a/eviction
		405 MethodNotAllowed: the server does not allow this method on the requested resource`},
}

func TestEviction(t *testing.T) { playEach(t, awayOnPostgres, evictionRows) }

// TestConcurrentEvictions evicts many pods at once, through two servers where they can share a
// database. No more pods are evicted than the budget allows.
func TestConcurrentEvictions(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		var servers []*harness
		for range d.Servers {
			servers = append(servers, newHarnessOn(t, dsn, awayOnPostgres, rest.Options{}))
		}
		testEvictions(t, servers, 16, 3)
	})
}

func testEvictions(t *testing.T, servers []*harness, pods, most int) {
	const path, budgets = "/api/v1/namespaces/default/pods", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	patch := []string{"Content-Type", "application/merge-patch+json"}
	first := servers[0]
	for i := range pods {
		name := fmt.Sprintf("p%d", i)
		first.do("POST", path, strings.Replace(assigned, `"name":"a"`, `"name":"`+name+`"`, 1)).want(201)
		first.do("PATCH", path+"/"+name+"/status", ready, patch...).want(200)
	}
	first.do("POST", budgets, budget).want(201)
	first.do("PATCH", budgets+"/b/status", allowed(most), patch...).want(200)

	answers := make([]answer, pods)
	var wg sync.WaitGroup
	for i := range pods {
		wg.Go(func() {
			name := fmt.Sprintf("p%d", i)
			answers[i] = servers[i%len(servers)].do("POST", path+"/"+name+"/eviction", `{"metadata":{"name":"`+name+`"}}`)
		})
	}
	wg.Wait()
	went := 0
	for _, a := range answers {
		switch {
		case a.code == 201:
			went++
		case a.code != 429 || a.get("details", "causes", "0", "reason") != "DisruptionBudget":
			t.Errorf("another answer: %d %s", a.code, a.body)
		}
	}
	b := first.do("GET", budgets+"/b", "")
	var disrupted map[string]any
	if err := json.Unmarshal([]byte(b.get("status", "disruptedPods")), &disrupted); err != nil {
		t.Fatal(err)
	}
	if left := b.get("status", "disruptionsAllowed"); went != most || left != "0" || len(disrupted) != most {
		t.Errorf("%d pods went of %d, %s more may, %d are noted", went, most, left, len(disrupted))
	}
	terminating := strings.Count(first.do("GET", path, "").body, `"deletionTimestamp"`)
	if terminating != most {
		t.Errorf("%d pods are being deleted", terminating)
	}
}

// TestRetryAfter looks at the Retry-After header of a refused eviction.
func TestRetryAfter(t *testing.T) {
	h := newHarness(t, rest.Options{})
	h.do("POST", "/api/v1/namespaces/default/pods", assigned).want(201)
	h.do("PATCH", "/api/v1/namespaces/default/pods/a/status", ready, "Content-Type", "application/merge-patch+json").want(200)
	h.do("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget).want(201)
	a := h.do("POST", "/api/v1/namespaces/default/pods/a/eviction", evict).want(429)
	if a.head.Get("Retry-After") != "10" {
		t.Errorf("Retry-After: %q", a.head.Get("Retry-After"))
	}
}
