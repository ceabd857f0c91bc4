package discovery_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientdiscovery "k8s.io/client-go/discovery"
	clientrest "k8s.io/client-go/rest"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/discovery"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// Group versions of extension servers stand where their priorities put them.
func TestExtensions(t *testing.T) {
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{Registry: kinds}))
	gone := make(chan struct{})
	kinds.Replace(nil, []*kind.Kind{{
		Group: "mid.example.com", Resource: "widgets", Kind: "Widget", Custom: &kind.CustomResource{Gone: gone}, Verbs: []string{"get"},
		Versions: []kind.Version{{Name: "v1"}},
	}})
	extensions := aggregator.New(nil, func() (*tls.Certificate, error) { return nil, nil }, nil)
	defer extensions.Close()
	server := httptest.NewServer(discovery.New(kinds, extensions))
	defer server.Close()
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&clientrest.Config{Host: server.URL})
	builtins := groupsOf(t, client)
	if n := len(builtins); builtins[n-1] != "mid.example.com v1" {
		t.Fatalf("the last group is %s", builtins[n-1])
	}

	for name, priorities := range map[string][2]int32{
		"v1.low.example.com":  {900, 15},
		"v1.mid2.example.com": {1000, 15},
		"v1.alpha.example.io": {1000, 15},
		"v1.high.example.com": {17790, 15}, // between apps and events.k8s.io
		"v2.mid.example.com":  {1, 99},     // behind v1, which has 100
		"v3.mid.example.com":  {1, 101},
		"v9.batch":            {1, 14}, // built-in versions have 15
		"v1.policy":           {1, 1},  // instead of this server's own
	} {
		version, group, _ := strings.Cut(name, ".")
		extensions.Put(&apiregistration.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: apiregistration.APIServiceSpec{
				Group: group, Version: version, GroupPriorityMinimum: priorities[0], VersionPriority: priorities[1],
				InsecureSkipTLSVerify: true, Service: &apiregistration.ServiceReference{Namespace: "ns", Name: "ext"},
			},
		})
	}
	var want []string
	for _, g := range builtins[:len(builtins)-1] {
		switch g {
		case "batch v1":
			g = "batch v1 v9"
		case "events.k8s.io v1":
			want = append(want, "high.example.com v1")
		}
		want = append(want, g)
	}
	want = append(want, "alpha.example.io v1", "mid.example.com v3 v1 v2", "mid2.example.com v1", "low.example.com v1")
	if diff := cmp.Diff(want, groupsOf(t, client)); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	var list apidiscovery.APIGroupDiscoveryList
	raw, err := client.RESTClient().Get().AbsPath("/apis").SetHeader("Accept", clientdiscovery.AcceptV2).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range list.Items {
		line := g.Name
		for _, v := range g.Versions {
			line += " " + v.Version
			if stale := v.Freshness == apidiscovery.DiscoveryFreshnessStale; stale != (len(v.Resources) == 0) {
				t.Errorf("%s %s is %s and has %d resources", g.Name, v.Version, v.Freshness, len(v.Resources))
			}
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aggregated (-want +got):\n%s", diff)
	}
}

func groupsOf(t *testing.T, client *clientdiscovery.DiscoveryClient) (groups []string) {
	t.Helper()
	var list metav1.APIGroupList // the client itself leaves out what is stale
	raw, err := client.RESTClient().Get().AbsPath("/apis").SetHeader("Accept", "application/json").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for _, g := range list.Groups {
		line := g.Name
		for _, v := range g.Versions {
			line += " " + v.Version
		}
		if g.Name != "" {
			groups = append(groups, line)
		}
	}
	return groups
}
