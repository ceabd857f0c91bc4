package past

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestDeeds undoes what one user did, from the last to the first, and leaves what others changed since.
func TestDeeds(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	names := []string{"changed", "deleted", "changed-and-deleted", "others", "late"}
	for _, name := range names {
		f.create(bob, "configmaps", configMap(name, "0"))
	}
	f.change(ann, f.target("configmaps", "late"), set("k", "early")) // before the window
	since := Moment{Revision: revisionOf(f.change(bob, f.target("configmaps", "late"), set("other", "x"))) + 1}

	f.change(ann, f.target("configmaps", "changed"), set("k", "1"))
	f.create(ann, "configmaps", configMap("created", "1"))
	f.remove(ann, f.target("configmaps", "deleted"))
	f.change(ann, f.target("configmaps", "changed-and-deleted"), set("k", "1"))
	f.remove(ann, f.target("configmaps", "changed-and-deleted"))
	f.change(ann, f.target("configmaps", "others"), set("k", "1"))
	f.change(bob, f.target("configmaps", "others"), set("other", "2"))
	f.create(ann, "configmaps", configMap("came-and-went", "1"))
	f.remove(ann, f.target("configmaps", "came-and-went"))
	f.change(ann, f.target("configmaps", "changed"), set("k", "2"))
	f.change(ann, f.target("configmaps", "late"), set("k", "1"))

	deeds, err := f.c.Deeds(f.Context(), Query{Namespace: "default"}.Bound(historyv1.FieldSince, since), "ann")
	f.must(err)
	var got []string
	for _, deed := range deeds {
		got = append(got, fmt.Sprintf("%s %s %d", deed.Verb(), deed.Object.Name, len(deed.Others)))
		step, err := f.c.UndoDeed(f.Context(), deed)
		f.must(err)
		if len(deed.Others) == 0 {
			f.do(step, nil)
		}
	}
	want := []string{"change late 0", "change changed 0", "change others 1", "create changed-and-deleted 0", "create deleted 0", "delete created 0"}
	if !slices.Equal(got, want) {
		t.Errorf("the deeds are %q, want %q", got, want)
	}
	for name, value := range map[string]string{"changed": "0", "deleted": "0", "changed-and-deleted": "0", "others": "1", "late": "early"} {
		if o := f.now(f.target("configmaps", name)); o == nil || valueOf(o) != value {
			t.Errorf("%s is %v, want %s", name, o, value)
		}
	}
	if f.now(f.target("configmaps", "created")) != nil {
		t.Error("what was created is there")
	}
}

func revisionOf(o *unstructured.Unstructured) (revision int64) {
	_, _ = fmt.Sscan(o.GetResourceVersion(), &revision)
	return revision
}
