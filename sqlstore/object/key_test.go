package object_test

import (
	"testing"

	. "github.com/plinth-io/plinth/sqlstore/object"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct{ group, resource, prefix string }{
		{"", "pods", "/registry/core/pods/"},
		{"apps", "deployments", "/registry/apps/deployments/"},
		{InternalGroup, "nodeports", "/registry/_plinth/nodeports/"},
	} {
		prefix := Prefix(c.group, c.resource)
		if prefix != c.prefix {
			t.Errorf("the prefix of %s in %q is %s, want %s", c.resource, c.group, prefix, c.prefix)
		}
		if group, resource := SplitPrefix(prefix); group != c.group || resource != c.resource {
			t.Errorf("%s splits into %q and %q", prefix, group, resource)
		}
		for key, want := range map[string]string{Key(prefix, "", "a"): c.prefix + "a", Key(prefix, "ns", "a"): c.prefix + "ns/a"} {
			if key != want || ResourceOf(key) != prefix {
				t.Errorf("key %s of resource %s, want %s of %s", key, ResourceOf(key), want, prefix)
			}
		}
	}
	for _, no := range []string{"", "/registry/", "/registry/core/"} {
		if _, resource := SplitPrefix(no); resource != "" {
			t.Errorf("%q has the resource %q", no, resource)
		}
	}
}
