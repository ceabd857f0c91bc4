package builtin_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
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
		typed := newOf(t, r.GVK)
		typed.GetObjectKind().SetGroupVersionKind(r.GVK)
		if _, err := k.Versions[0].Fields.Types.ObjectToTyped(typed); err != nil {
			t.Errorf("%v: %v", r.GVK, err)
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

// TestRemovedKindsOfEmulatedRelease: an older release that is emulated still has some of the versions. They are served once,
// whether --runtime-config names them or not.
func TestRemovedKindsOfEmulatedRelease(t *testing.T) {
	all := removed(t, "all")
	if err := kind.Emulate([]string{"1.36"}, nil); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := kind.Emulate(nil, nil); err != nil {
			t.Fatal(err)
		}
	}()
	for _, settings := range []map[string]string{nil, {"api/beta": "true"}, {"networking.k8s.io/v1beta1/servicecidrs": "true"}} {
		enabled, err := builtin.ParseEnabled(settings, builtin.Forward{})
		if err != nil {
			t.Fatal(err)
		}
		served := map[schema.GroupVersionResource]int{}
		for _, k := range builtin.Kinds(builtin.Options{Removed: all, Enabled: enabled}) {
			for _, v := range k.Versions {
				served[k.GroupResource().WithVersion(v.Name)]++
			}
		}
		for _, r := range all {
			if served[r.Resource] != 1 {
				t.Errorf("%v: %v is served %d times", settings, r.Resource, served[r.Resource])
			}
		}
	}
}
