package builtin_test

import (
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestRemovedKindsAreComplete checks the fields of the Kinds of all removed versions.
func TestRemovedKindsAreComplete(t *testing.T) {
	all := removed(t, "all")
	today := len(builtin.Kinds(builtin.Options{}))
	kinds := builtin.Kinds(builtin.Options{Removed: all})
	if len(kinds) != today+len(all) {
		t.Fatalf("%d kinds, want %d and %d", len(kinds), today, len(all))
	}
	for i, k := range kinds[today:] {
		r := all[i]
		if k.GVK(k.Versions[0].Name) != r.GVK || k.Resource != r.Resource.Resource {
			t.Errorf("%v %s: want %v", k.GVK(k.Versions[0].Name), k.Resource, r)
		}
		now := find(t, r.Now.Group, k.Resource)
		if k.Stored != now.Stored || now.Version(r.Now.Version) == nil {
			t.Errorf("%v: stored as %v, want %v; now %v", r.GVK, k.Stored, now.Stored, r.Now)
		}
		if k.Virtual == nil {
			checkRules(t, k)
		}
		for name, sub := range k.Subresources {
			if now.Subresources[name] == sub || sub.Fields[r.GVK.Version] == nil {
				t.Errorf("%v: subresource %s is today's", r.GVK, name)
			}
		}
		want := " was removed in v1."
		if !strings.HasPrefix(k.Versions[0].Deprecated, r.GVK.GroupVersion().String()+" "+k.Kind+want) ||
			!strings.HasSuffix(k.Versions[0].Deprecated, "; use "+r.Now.GroupVersion().String()+" "+k.Kind) {
			t.Errorf("%v: %s", r.GVK, k.Versions[0].Deprecated)
		}
	}
}
