package rest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/rest"
)

func TestCreateGetUpdateDelete(t *testing.T) {
	h := newHarness(t, rest.Options{})
	created := h.do("POST", configMaps, configMap("a", "1")).want(201)
	if created.get("metadata", "uid") == "" || created.get("metadata", "creationTimestamp") == "" {
		t.Fatalf("system fields are not set: %s", created.body)
	}
	if created.get("kind") != "ConfigMap" || created.get("apiVersion") != "v1" {
		t.Fatalf("kind or apiVersion missing: %s", created.body)
	}
	got := h.do("GET", configMaps+"/a", "").want(200)
	if got.body != created.body {
		t.Fatalf("get differs from create:\n%s\n%s", got.body, created.body)
	}
	if !strings.HasSuffix(got.body, "}\n") {
		t.Errorf("body does not end with a newline: %q", got.body)
	}
	// An update without a resourceVersion is unconditional for ConfigMaps.
	updated := h.do("PUT", configMaps+"/a", configMap("a", "2")).want(200)
	if updated.get("data", "key") != "2" || updated.get("metadata", "uid") != created.get("metadata", "uid") {
		t.Fatalf("update: %s", updated.body)
	}
	if updated.get("metadata", "resourceVersion") == created.get("metadata", "resourceVersion") {
		t.Fatal("an update did not move the resourceVersion")
	}
	same := h.do("PUT", configMaps+"/a", configMap("a", "2")).want(200)
	if same.body != updated.body {
		t.Fatalf("an update that changes nothing changed something:\n%s\n%s", same.body, updated.body)
	}
	stale := strings.Replace(created.body, `"key":"1"`, `"key":"3"`, 1)
	conflict := h.do("PUT", configMaps+"/a", stale).want(409)
	if conflict.get("reason") != "Conflict" || !strings.Contains(conflict.get("message"), "the object has been modified") {
		t.Fatalf("conflict: %s", conflict.body)
	}
	deleted := h.do("DELETE", configMaps+"/a", "").want(200)
	if deleted.get("status") != "Success" || deleted.get("details", "uid") != created.get("metadata", "uid") || deleted.get("details", "kind") != "configmaps" {
		t.Fatalf("delete: %s", deleted.body)
	}
	missing := h.do("GET", configMaps+"/a", "").want(404)
	if missing.get("message") != `configmaps "a" not found` || missing.get("reason") != "NotFound" {
		t.Fatalf("get after delete: %s", missing.body)
	}
}

// Each row is one kind of bad request and upstream's answer to it.
func TestBadRequests(t *testing.T) {
	h := newHarness(t, rest.Options{MaxBodyBytes: 1 << 20})
	h.do("POST", configMaps, configMap("there", "1")).want(201)
	long := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		reason, message          string
	}{
		{"other version", "POST", configMaps, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"}}`, nil, 400, "BadRequest", ""},
		{"too large", "POST", configMaps, long + "x", nil, 413, "RequestEntityTooLarge", "limit is 1048576"},
		{"delete of nothing there", "DELETE", configMaps + "/nobody", "", nil, 404, "NotFound", `configmaps "nobody" not found`},
		{"name too long to store", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"` + strings.Repeat("n", 1100) + `"}}`, nil, 422, "Invalid", "metadata.name"},
		{"name that is no text", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"a\u0000b"}}`, nil, 422, "Invalid", "metadata.name"},
		{"bad label selector", "GET", configMaps + "?labelSelector=a%20b", "", nil, 400, "BadRequest", "unable to parse requirement"},
		{"bad field selector", "GET", configMaps + "?fieldSelector=spec.color%3Dred", "", nil, 400, "BadRequest", `"spec.color" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"bad dry run", "POST", configMaps + "?dryRun=Some", configMap("x", "1"), nil, 422, "Invalid", "dryRun"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.t = t
			a := h.do(test.method, test.path, test.body, test.headers...).want(test.code)
			if a.get("kind") != "Status" || a.get("status") != "Failure" || a.get("code") != fmt.Sprint(test.code) {
				t.Errorf("not a Status: %s", a.body)
			}
			if a.get("reason") != test.reason {
				t.Errorf("reason %q, want %q", a.get("reason"), test.reason)
			}
			if !strings.Contains(a.get("message"), test.message) {
				t.Errorf("message %q, want it to contain %q", a.get("message"), test.message)
			}
		})
	}
}

func TestStatusAndScale(t *testing.T) {
	h := newHarness(t, rest.Options{})
	deployments := "/apis/apps/v1/namespaces/default/deployments"
	body := `{"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c1","image":"i1"}]}}},"status":{"replicas":7}}`
	a := h.do("POST", deployments, body).want(201)
	if a.get("status", "replicas") != "" {
		t.Errorf("create kept a status: %s", a.body)
	}
	a = h.do("PUT", deployments+"/d/status", strings.Replace(body, `"replicas":2`, `"replicas":5`, 1)).want(200)
	if a.get("status", "replicas") != "7" || a.get("spec", "replicas") != "2" {
		t.Errorf("status update: %s", a.body)
	}
	a = h.do("GET", deployments+"/d/scale", "").want(200)
	if a.get("kind") != "Scale" || a.get("apiVersion") != "autoscaling/v1" || a.get("spec", "replicas") != "2" || a.get("status", "selector") != "a=b" || a.get("status", "replicas") != "7" {
		t.Errorf("scale: %s", a.body)
	}
	a = h.do("GET", deployments+"/d/scale", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").want(200)
	if a.get("kind") != "Table" || a.get("columnDefinitions", "1", "name") != "Desired" || a.get("rows", "0", "cells", "1") != "2" || a.get("rows", "0", "object", "metadata", "name") != "d" {
		t.Errorf("table of a scale: %s", a.body)
	}
	a = h.do("PATCH", deployments+"/d/scale", `{"spec":{"replicas":4}}`, "Content-Type", "application/merge-patch+json").want(200)
	if a.get("spec", "replicas") != "4" {
		t.Errorf("patched scale: %s", a.body)
	}
	scale := strings.Replace(a.body, `"replicas":4`, `"replicas":6`, 1)
	h.do("PUT", deployments+"/d/scale", scale).want(200)
	h.do("PUT", deployments+"/d/scale", scale).want(409) // its resourceVersion is used up
	a = h.do("GET", deployments+"/d", "").want(200)
	if a.get("spec", "replicas") != "6" || a.get("metadata", "generation") != "3" {
		t.Errorf("deployment after scaling: %s", a.body)
	}
	h.do("PATCH", deployments+"/d/scale", `{"spec":{"replicas":-4}}`, "Content-Type", "application/merge-patch+json").want(422)
}

func TestSelectors(t *testing.T) {
	h := newHarness(t, rest.Options{})
	for i := range 25 {
		h.do("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"c%02d","labels":{"mod":"%d"}}}`, i, i%5)).want(201)
	}
	names := func(a answer) (list []string) {
		var body struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatal(err)
		}
		for _, item := range body.Items {
			list = append(list, item.Metadata.Name)
		}
		return list
	}
	a := h.do("GET", configMaps+"?labelSelector=mod%3D1", "").want(200)
	if got := fmt.Sprint(names(a)); got != "[c01 c06 c11 c16 c21]" {
		t.Errorf("label selector: %s", got)
	}
	a = h.do("GET", configMaps+"?labelSelector=mod&limit=3", "").want(200)
	if a.get("metadata", "remainingItemCount") != "" || a.get("metadata", "continue") == "" {
		t.Errorf("selected page: %s", a.body)
	}
	// No object has an empty name; it does not mean all of them.
	for _, empty := range []string{"metadata.name%3D", "metadata.name%3D%2Cmetadata.namespace%3Ddefault"} {
		before := h.store.Revision()
		if a = h.do("GET", configMaps+"?fieldSelector="+empty, "").want(200); len(names(a)) != 0 {
			t.Errorf("%s selects %v", empty, names(a))
		}
		if h.do("DELETE", configMaps+"?fieldSelector="+empty, "").want(200); h.store.Revision() != before {
			t.Fatalf("%s deleted something", empty)
		}
	}
	a = h.do("GET", configMaps+"?fieldSelector=metadata.name%3Dc03", "").want(200)
	if got := fmt.Sprint(names(a)); got != "[c03]" {
		t.Errorf("field selector: %s", got)
	}
	empty := h.do("GET", "/api/v1/namespaces/none/configmaps", "").want(200)
	if !strings.Contains(empty.body, `"items":[]`) {
		t.Errorf("empty list: %s", empty.body)
	}
}

// events reads n events of a watch as "TYPE name" and the raw lines.
func (h *harness) events(path string, n int, headers ...string) (list []string, raw []string) {
	h.t.Helper()
	req, _ := http.NewRequest("GET", h.http.URL+path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		h.t.Fatalf("watch answered %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for len(list) < n && lines.Scan() {
		var e struct {
			Type   string
			Object struct {
				Metadata struct{ Name string }
				Reason   string
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			h.t.Fatalf("event %q: %v", lines.Text(), err)
		}
		list = append(list, strings.TrimSpace(e.Type+" "+e.Object.Metadata.Name+e.Object.Reason))
		raw = append(raw, lines.Text())
	}
	return list, raw
}

func TestWatchEnds(t *testing.T) {
	h := newHarness(t, rest.Options{})
	h.do("POST", configMaps, configMap("a", "1")).want(201)
	if got, _ := h.events(configMaps+"?watch=1&timeoutSeconds=1", 100); len(got) != 1 {
		t.Errorf("a watch of one second had %v", got)
	}
	done := make(chan []string)
	go func() {
		got, _ := h.events(configMaps+"?watch=1&timeoutSeconds=25", 100)
		done <- got
	}()
	for h.store.Stats().Watchers == 0 {
		time.Sleep(time.Millisecond)
	}
	h.api.Drain()
	if got := <-done; len(got) != 1 {
		t.Errorf("a drained watch had %v", got)
	}
}

// Two versions and two groups of the same objects.
func TestOtherVersions(t *testing.T) {
	h := newHarness(t, rest.Options{})
	hpas := func(v string) string {
		return "/apis/autoscaling/" + v + "/namespaces/default/horizontalpodautoscalers"
	}
	h.do("POST", hpas("v1"), `{"metadata":{"name":"h"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`).want(201)
	a := h.do("GET", hpas("v2")+"/h", "").want(200)
	if a.get("apiVersion") != "autoscaling/v2" || a.get("spec", "metrics", "0", "resource", "target", "averageUtilization") != "50" {
		t.Errorf("v2: %s", a.body)
	}
	a = h.do("GET", hpas("v1"), "").want(200)
	if a.get("apiVersion") != "autoscaling/v1" || a.get("items", "0", "spec", "targetCPUUtilizationPercentage") != "50" || a.get("items", "0", "kind") != "" {
		t.Errorf("v1 list: %s", a.body)
	}
	h.do("POST", "/apis/events.k8s.io/v1/namespaces/default/events", `{"metadata":{"name":"e"},"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"c.io/x","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"default"}}`).want(201)
	a = h.do("GET", "/api/v1/namespaces/default/events/e", "").want(200)
	if a.get("apiVersion") != "v1" || a.get("reportingComponent") != "c.io/x" {
		t.Errorf("core event: %s", a.body)
	}
}
