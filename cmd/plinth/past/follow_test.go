package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestFollow has each change once, in order, those from before the watch too.
func TestFollow(t *testing.T) {
	t.Parallel()
	f := start(t)
	q := Query{Namespace: "default", Limit: 2}.With(historyv1.FieldResource, "configmaps")
	for i := range 3 {
		f.create(f.c, "configmaps", configMap(fmt.Sprint("before-", i), ""))
	}
	before, version, err := f.c.History.Newest(f.Context(), q)
	f.must(err)
	var got []string
	for _, change := range before {
		got = append(got, change.Object.Name)
	}
	f.create(f.c, "configmaps", configMap("a", ""))
	enough := errors.New("enough")
	err = f.c.History.Follow(f.Context(), q, version, func(raw *unstructured.Unstructured, change historyv1.Change) error {
		if raw.GetName() != fmt.Sprint(change.Revision) {
			t.Errorf("%v is not %d", raw.Object, change.Revision)
		}
		got = append(got, change.Object.Name+" "+string(change.Action))
		switch len(got) {
		case 3:
			f.change(f.c, f.target("configmaps", "a"), set("k", "1"))
			f.create(f.c, "secrets", "{apiVersion: v1, kind: Secret, metadata: {name: other}}")
			f.remove(f.c, f.target("configmaps", "a"))
		case 5:
			return enough
		}
		return nil
	})
	want := []string{"before-1", "before-2", "a created", "a changed", "a deleted"}
	if !errors.Is(err, enough) || !slices.Equal(got, want) {
		t.Errorf("%v, %q; want %q", err, got, want)
	}
}

// TestFollowUser has what a user did, also under another name, and what others did under his.
func TestFollowUser(t *testing.T) {
	t.Parallel()
	f := start(t)
	bob := f.client("bob")
	q := Query{Namespace: "default", Limit: 5}.With(historyv1.FieldResource, "configmaps")
	f.create(bob, "configmaps", configMap("before", ""))
	f.create(f.c, "configmaps", configMap("other", ""))
	before, version, err := f.c.History.NewestOf(f.Context(), q, "bob")
	f.must(err)
	if len(before) != 1 || before[0].Object.Name != "before" || before[0].User != "bob" || before[0].Impersonator == "" {
		t.Fatalf("before: %+v", before)
	}
	admin := before[0].Impersonator
	f.create(bob, "configmaps", configMap("a", ""))
	f.create(f.c, "configmaps", configMap("b", ""))
	f.create(bob, "configmaps", configMap("c", ""))
	enough := errors.New("enough")
	for name, want := range map[string][]string{"bob": {"a", "c"}, admin: {"a", "b", "c"}} {
		var got []string
		err = f.c.History.FollowUser(f.Context(), q, name, version, func(_ *unstructured.Unstructured, change historyv1.Change) error {
			if got = append(got, change.Object.Name); len(got) == len(want) {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %q; want %q", name, err, got, want)
		}
	}
}

// TestFollowRefused ends at once where the user may not watch.
func TestFollowRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	config := *f.server.Config
	config.Impersonate.UserName = "nobody"
	c, err := New(&config, nil)
	f.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = c.History.Follow(ctx, Query{Namespace: "default"}, "1", func(*unstructured.Unstructured, historyv1.Change) error { return nil })
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
