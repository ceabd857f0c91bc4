package rest_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/plinth-io/plinth/server/rest"
)

// Half of all hashes, and the end of all of them.
const (
	half = "8000000000000000"
	full = "10000000000000000"
)

var (
	lower = shardOf("uid", "0000000000000000", half)
	upper = shardOf("uid", half, full)
)

// shardOf selects a range of the hashes of a field.
func shardOf(field, start, end string) string {
	return fmt.Sprintf("shardRange(object.metadata.%s, '0x%s', '0x%s')", field, start, end)
}

// in is a path with a shard.
func in(path, shard, more string) string {
	return path + "?shardSelector=" + url.QueryEscape(shard) + more
}

func setShards(t *testing.T, on bool) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.ShardedListAndWatch, on)
}

// newSharded has 16 ConfigMaps or more, and which of them are in each half: the server chooses UIDs, and two at least are in
// each half. Their names have a letter that no UID has: a test that looks for a name in a body must not find it in a UID.
func newSharded(t *testing.T) (h *harness, halves map[string][]string) {
	t.Helper()
	setShards(t, true)
	h, halves = newHarness(t, rest.Options{}, nothingStays), map[string][]string{}
	for i := 0; i < 16 || len(halves[lower]) < 2 || len(halves[upper]) < 2; i++ {
		a := h.do("POST", configMaps, configMap(fmt.Sprintf("n%02d", i), "a")).want(201)
		of := upper
		if sharding.HashField(a.get("metadata", "uid")) < half {
			of = lower
		}
		halves[of] = append(halves[of], a.get("metadata", "name"))
	}
	return h, halves
}

// listed are the names of a list.
func (a answer) listed() (names []string) {
	a.t.Helper()
	a.want(200)
	for i := 0; a.get("items", fmt.Sprint(i), "metadata", "name") != ""; i++ {
		names = append(names, a.get("items", fmt.Sprint(i), "metadata", "name"))
	}
	return names
}

// TestShardedLists: with the feature gate ShardedListAndWatch clients share the objects of a resource among them, by hashes of
// their UIDs or namespaces. As in kube-apiserver, only lists of whole objects of built-in types say which shard they are.
func TestShardedLists(t *testing.T) {
	h, halves := newSharded(t)
	for shard, want := range halves {
		a := h.do("GET", in(configMaps, shard, ""), "")
		if got := a.listed(); !slices.Equal(got, want) || a.get("metadata", "shardInfo", "selector") != shard {
			t.Errorf("%s: %v, want %v; metadata %s", shard, got, want, a.get("metadata"))
		}
	}
	if got := h.do("GET", in(configMaps, lower+" || "+upper, ""), "").listed(); len(got) != len(halves[lower])+len(halves[upper]) {
		t.Errorf("both halves have %v", got)
	}
	page := h.do("GET", in(configMaps, lower, "&limit=1"), "")
	if page.get("metadata", "continue") == "" || page.get("metadata", "remainingItemCount") != "" {
		t.Errorf("page: %s", page.get("metadata"))
	}
	others := h.do("GET", in(configMaps, lower, "&continue="+page.get("metadata", "continue")), "")
	if got := append(page.listed(), others.listed()...); !slices.Equal(got, halves[lower]) {
		t.Errorf("pages have %v, want %v", got, halves[lower])
	}
	for accept, says := range map[string]bool{
		"application/vnd.kubernetes.protobuf":                                                 true,
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1":                    false,
		"application/json;as=Table;g=meta.k8s.io;v=v1":                                        false,
		"application/yaml;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1":                    false,
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": false,
	} {
		a := h.do("GET", in(configMaps, lower, ""), "", "Accept", accept).want(200)
		if strings.Contains(a.body, "shardRange") != says || !strings.Contains(a.body, halves[lower][0]) || strings.Contains(a.body, halves[upper][0]) {
			t.Errorf("%s: %q", accept, a.body)
		}
	}
	h.do("DELETE", in(configMaps, upper, ""), "").want(200)
	if got := h.do("GET", configMaps, "").listed(); !slices.Equal(got, halves[lower]) {
		t.Errorf("left are %v, want %v", got, halves[lower])
	}
	setShards(t, false)
	if got := h.do("GET", in(configMaps, "bad", ""), "").listed(); !slices.Equal(got, halves[lower]) {
		t.Errorf("without the feature gate: %v", got)
	}
}

// TestShardsOfNamespaces selects all objects of some namespaces.
func TestShardsOfNamespaces(t *testing.T) {
	h, halves := newSharded(t)
	h.do("POST", "/api/v1/namespaces/other/configmaps", configMap("x", "a")).want(201)
	for _, shard := range []string{shardOf("namespace", "0000000000000000", half), shardOf("namespace", half, full)} {
		want := 0
		for namespace, n := range map[string]int{"default": len(halves[lower]) + len(halves[upper]), "other": 1} {
			if (sharding.HashField(namespace) < half) == strings.Contains(shard, "'0x0") {
				want += n
			}
		}
		if got := h.do("GET", in("/api/v1/configmaps", shard, ""), "").listed(); len(got) != want {
			t.Errorf("%s: %v, want %d", shard, got, want)
		}
	}
}

// TestShardsOfCustomResources: their lists have no field for the shard, as in kube-apiserver.
func TestShardsOfCustomResources(t *testing.T) {
	setShards(t, true)
	h := newHarness(t, rest.Options{}, nothingStays)
	h.serveDefinitions()
	h.define(widgets(t, "example.com"))
	h.do("POST", widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"color":"red"}}`).want(201)
	is, not := h.do("GET", in(widgetsPath, lower, ""), "").want(200), h.do("GET", in(widgetsPath, upper, ""), "").want(200)
	if len(is.listed())+len(not.listed()) != 1 || strings.Contains(is.body+not.body, "shardInfo") {
		t.Errorf("%s%s", is.body, not.body)
	}
}

func TestShardedWatches(t *testing.T) {
	h, halves := newSharded(t)
	first, _ := h.events(in(configMaps, lower, "&watch=1"), len(halves[lower]))
	for i, name := range halves[lower] {
		if first[i] != "ADDED "+name {
			t.Errorf("state: %v, want %v", first, halves[lower])
		}
	}
	at := h.do("GET", configMaps, "").get("metadata", "resourceVersion")
	for _, name := range []string{halves[upper][0], halves[lower][0]} {
		h.do("PATCH", configMaps+"/"+name, `{"data":{"a":"b"}}`, "Content-Type", "application/merge-patch+json").want(200)
		h.do("DELETE", configMaps+"/"+name, "").want(200)
	}
	changes, _ := h.events(in(configMaps, lower, "&watch=1&resourceVersion="+at), 2)
	if name := halves[lower][0]; !slices.Equal(changes, []string{"MODIFIED " + name, "DELETED " + name}) {
		t.Errorf("changes: %v", changes)
	}
}

// TestShardSelectors has the messages of kube-apiserver, where these errors have the code 500.
func TestShardSelectors(t *testing.T) {
	setShards(t, true)
	h := newHarness(t, rest.Options{}, nothingStays)
	for _, row := range []struct{ shard, want string }{
		{"bad", "invalid shard selector: unexpected expression kind 3; expected shardRange() call or || operator"},
		{" ", "invalid shard selector: empty shard selector is not allowed; omit the parameter for unfiltered lists"},
		{shardOf("uid", "0", half), `invalid shard selector: hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "0x0000000000000000"?)`},
		{shardOf("uid", half, half), "invalid shard selector: shard range start 0x8000000000000000 must be less than end 0x8000000000000000"},
		{shardOf("name", half, full), `invalid shard selector: unsupported field path "object.metadata.name"; supported: object.metadata.uid, object.metadata.namespace`},
		{lower + " || " + shardOf("namespace", half, full), `invalid shard selector: all shard ranges must use the same field, got "object.metadata.uid" and "object.metadata.namespace"`},
		{strings.Repeat(lower+" || ", 1000) + upper, "shardSelector has 2003 terms; at most 1000 are possible: select fewer, and make several requests"},
	} {
		for _, more := range []string{"", "&watch=1"} {
			if a := h.do("GET", in(configMaps, row.shard, more), "").want(400); a.get("message") != row.want {
				t.Errorf("%.80s: %s", row.shard, a.body)
			}
		}
	}
	h.do("GET", configMaps+"?shardSelector=", "").want(200)
}
