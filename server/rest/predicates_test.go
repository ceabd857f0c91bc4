package rest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

var predicateSelectors = []string{
	"labelSelector=app%3Da3",
	"labelSelector=app%3D%3Da3,tier",
	"labelSelector=app+in+(a1,a5,none)",
	"labelSelector=app+notin+(a1,a2)",
	"labelSelector=tier",
	"labelSelector=!tier",
	"labelSelector=!tier,app%3Da4",
	"labelSelector=number%3E7",
	"labelSelector=app!%3Da1,number%3C3",
	"fieldSelector=spec.nodeName%3Dn2",
	"fieldSelector=spec.nodeName%3D",
	"fieldSelector=spec.nodeName!%3D",
	"fieldSelector=spec.nodeName%3Dn1,status.phase!%3DFailed&labelSelector=app%3Da2",
	"fieldSelector=status.phase%3DRunning,metadata.namespace%3Dns1",
	"fieldSelector=spec.restartPolicy%3DAlways,spec.hostNetwork%3Dtrue",
	"fieldSelector=metadata.name%3Dpod-007",
	"fieldSelector=metadata.name%3Dpod-008&labelSelector=tier",
}

// storePods stores pods in two namespaces, with random labels and fields, and deletes some.
func (h *harness) storePods(seed uint64) {
	h.t.Helper()
	h.do("POST", "/api/v1/namespaces/ns0/pods", `{"metadata":{"name":"pattern"},"spec":{"containers":[{"name":"main","image":"one"}]}}`).want(201)
	pattern := h.store.Get("/registry/core/pods/ns0/pattern")
	r := rand.New(rand.NewPCG(seed, 3))
	some := func(format string) string { return fmt.Sprintf(format, r.IntN(8)) }
	for range 400 {
		namespace, name := fmt.Sprintf("ns%d", r.IntN(2)), fmt.Sprintf("pod-%03d", r.IntN(200))
		labels := []string{some(`"app":"a%d"`), some(`"number":"%d"`), some(`"tier":"t%d"`)}[:r.IntN(4)]
		spec := []string{`"spec":{`, some(`"spec":{"nodeName":"n%d",`), some(`"spec":{"nodeName":"n%d","hostNetwork":true,`)}[r.IntN(3)]
		value := strings.NewReplacer(
			`"name":"pattern"`, `"name":"`+name+`"`, `"namespace":"ns0"`, `"namespace":"`+namespace+`","labels":{`+strings.Join(labels, ",")+`}`,
			`"spec":{`, spec, `"Pending"`, []string{`"Pending"`, `"Running"`}[r.IntN(2)],
		).Replace(string(object.Unsplice(pattern)))
		c := sqlstore.Change{Key: "/registry/core/pods/" + namespace + "/" + name, Value: []byte(value)}
		if e := h.store.Get(c.Key); e != nil {
			c.Expect, c.Delete = e.Revision, r.IntN(8) == 0
		}
		if _, err := h.store.Commit(h.t.Context(), c); err != nil {
			h.t.Fatal(err)
		}
	}
}

// names lists all pages of a collection.
func (h *harness) names(path string) (names []string) {
	h.t.Helper()
	for next := ""; ; {
		var list metav1.PartialObjectMetadataList
		a := h.do("GET", path+"&continue="+url.QueryEscape(next), "").want(200)
		if err := json.Unmarshal([]byte(a.body), &list); err != nil {
			h.t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, item.Namespace+"/"+item.Name)
		}
		if next = list.Continue; next == "" {
			return names
		}
	}
}

// TestSelectionsWithIndexes compares a server that has indexes with one that scans: lists in one piece and in
// pages, the events that a watch begins with, and the deletion of collections.
func TestSelectionsWithIndexes(t *testing.T) {
	scans, indexed := newHarnessWith(t, "sqlite://:memory:", sqlstore.Options{IndexBytes: -1, StateBytes: 1}, rest.Options{}), newHarness(t, rest.Options{}, nothingStays)
	scans.storePods(1)
	indexed.storePods(1)
	found := 0
	for range 6 { // an index is built when it was missed for a while
		for _, selector := range predicateSelectors {
			for _, path := range []string{"/api/v1/pods?" + selector, "/api/v1/namespaces/ns1/pods?" + selector, "/api/v1/pods?limit=7&" + selector} {
				want, got := scans.names(path), indexed.names(path)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, scanned against indexed:\n%s", path, diff)
				}
				found += len(got)
			}
		}
	}
	if n := indexed.store.Stats().Indexes; n < 5 || found == 0 {
		t.Errorf("%d indexes, %d objects were found", n, found)
	}
	for _, selector := range predicateSelectors {
		want := scans.names("/api/v1/pods?" + selector)
		events, _ := indexed.events("/api/v1/pods?watch=1&timeoutSeconds=1&"+selector, len(want))
		for i := range want {
			want[i] = "ADDED " + want[i][strings.IndexByte(want[i], '/')+1:]
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("watch of %s:\n%s", selector, diff)
		}
	}
	for _, selector := range predicateSelectors {
		path := "/api/v1/namespaces/ns1/pods?gracePeriodSeconds=0&" + selector
		scans.do("DELETE", path, "").want(200)
		indexed.do("DELETE", path, "").want(200)
		if diff := cmp.Diff(scans.names("/api/v1/pods?limit=500"), indexed.names("/api/v1/pods?limit=500")); diff != "" {
			t.Fatalf("after the deletion of %s:\n%s", selector, diff)
		}
	}
}
