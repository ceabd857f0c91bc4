package discovery_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestRemovedIsNeverPreferred checks that a client which is given a name alone takes
// today's version, as it does on a server without the removed ones.
func TestRemovedIsNeverPreferred(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	server, kinds := serve(t)
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&clientrest.Config{Host: server.URL})
	before, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	kinds.Replace(kinds.Set().Kinds, builtin.Kinds(builtin.Options{Removed: all}))
	after, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	was, is := restmapper.NewDiscoveryRESTMapper(before), restmapper.NewDiscoveryRESTMapper(after)
	for _, r := range all {
		want, err1 := was.ResourceFor(r.Now.GroupVersion().WithResource(r.Resource.Resource))
		got, err2 := is.ResourceFor(r.Resource.GroupResource().WithVersion(""))
		if r.Resource.Group != r.Now.Group { // extensions: the name alone leads to today's group
			got, err2 = is.ResourceFor(r.Resource.GroupVersion().WithResource(r.Resource.Resource))
			if err2 == nil && got != r.Resource {
				t.Errorf("%v: %v", r.Resource, got)
			}
			got, err2 = is.ResourceFor(want.GroupResource().WithVersion(""))
		}
		if err1 != nil || err2 != nil || got != want {
			t.Errorf("%v: %v %v, want %v %v", r.Resource, got, err2, want, err1)
		}
	}
	for _, name := range []string{"ing", "deploy", "rs", "ds", "netpol", "hpa", "cj", "pdb"} {
		was, err1 := restmapper.NewShortcutExpander(was, client, nil).ResourceFor(schema.GroupVersionResource{Resource: name})
		is, err2 := restmapper.NewShortcutExpander(is, client, nil).ResourceFor(schema.GroupVersionResource{Resource: name})
		if err1 != nil || err2 != nil || was != is {
			t.Errorf("%s: %v %v, want %v %v", name, is, err2, was, err1)
		}
	}
}
