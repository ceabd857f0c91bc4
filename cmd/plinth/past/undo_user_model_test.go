package past

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestDeedsModel lets one user do anything, undoes all of it, and compares what is there with what was
// there before.
func TestDeedsModel(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	name := func(i int) string { return fmt.Sprintf("m%d", i) }
	for i := range 4 {
		f.create(bob, "configmaps", configMap(name(i), "before"))
	}
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 3))
		mark := f.create(bob, "configmaps", configMap(fmt.Sprint("mark-", seed), ""))
		before := f.values(8, name)
		for range 20 {
			target := f.target("configmaps", name(random.IntN(8)))
			switch there := f.now(target) != nil; {
			case !there:
				f.create(ann, "configmaps", configMap(target.Name, fmt.Sprint(random.Int())))
			case random.IntN(3) == 0:
				f.remove(ann, target)
			default:
				f.change(ann, target, set("k", fmt.Sprint(random.Int())))
			}
		}
		q := Query{Namespace: "default"}.Bound(historyv1.FieldSince, Moment{Revision: revisionOf(mark)})
		deeds, err := f.c.Reverter.Deeds(f.Context(), q, "ann")
		f.must(err)
		for _, deed := range deeds {
			if len(deed.Others) > 0 {
				t.Errorf("seed %d: others changed %s", seed, deed.Object.Name)
			}
			f.do(f.c.Reverter.UndoDeed(f.Context(), deed))
		}
		if diff := cmp.Diff(before, f.values(8, name)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// values returns the values of the ConfigMaps that are there.
func (f *fixture) values(n int, name func(int) string) map[string]string {
	f.Helper()
	out := map[string]string{}
	for i := range n {
		if o := f.now(f.target("configmaps", name(i))); o != nil {
			out[name(i)] = valueOf(o)
		}
	}
	return out
}
