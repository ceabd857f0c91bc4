package kind

import "testing"

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		kind           Kind
		namespace, key string
	}{
		{Kind{Namespaced: true, Stored: Stored{Resource: "pods"}}, "b", "/registry/core/pods/b/a"},
		{Kind{Stored: Stored{Resource: "nodes"}}, "", "/registry/core/nodes/a"},
		{Kind{Group: "events.k8s.io", Namespaced: true, Stored: Stored{Resource: "events"}}, "b", "/registry/core/events/b/a"},
	} {
		if got := c.kind.Key("b", "a"); got != c.key {
			t.Errorf("key %s, want %s", got, c.key)
		}
		if namespace, name := c.kind.SplitKey(c.key); namespace != c.namespace || name != "a" {
			t.Errorf("%s is split into %q and %q", c.key, namespace, name)
		}
	}
}

func TestUpstreamPrefix(t *testing.T) {
	for want, k := range map[string]Kind{
		"/registry/pods/":               {Resource: "pods"},
		"/registry/services/endpoints/": {Resource: "endpoints", UpstreamPath: "services/endpoints"},
	} {
		if got := k.UpstreamPrefix(); got != want {
			t.Errorf("%s: %s, want %s", k.Resource, got, want)
		}
	}
}
