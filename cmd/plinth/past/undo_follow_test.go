package past

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/servertest"
)

// TestDeedsFollowers deletes a namespace, a definition and an owner, and brings back what went with them.
func TestDeedsFollowers(t *testing.T) {
	t.Parallel()
	f := start(t, servertest.Options{Controllers: []string{"namespace", "garbagecollector"}})
	ann, bob := f.client("ann"), f.client("bob")
	namespaces, maps := f.kind("namespaces"), f.kind("configmaps")
	f.write(bob, namespaces.In("", "prod"), "{apiVersion: v1, kind: Namespace, metadata: {name: prod}}")
	f.write(bob, maps.In("prod", "settings"), configMap("settings", "1"))
	f.write(bob, maps.In("prod", "mine"), configMap("mine", "1"))
	f.create(bob, "customresourcedefinitions", definition("things"))
	var things Kind
	f.eventually(func() (err error) {
		things, err = bob.Kinds.await(f.Context(), "things.example.com")
		return err
	})
	thing := f.parse("{apiVersion: example.com/v1, kind: Things, metadata: {name: one}}")
	f.eventually(func() error {
		_, err := bob.Reverter.endpoint(things.In("", "one"), thing).Create(f.Context(), thing, metav1.CreateOptions{})
		return err
	})
	owner := f.create(bob, "configmaps", configMap("owner", "1"))
	f.create(bob, "configmaps", configMap("made", "1"))
	owned := f.create(bob, "configmaps", configMap("owned", "1"))
	f.change(bob, f.target("configmaps", "owned"), ownedBy(owner, false))
	f.create(bob, "configmaps", configMap("owned-too", "1"))
	f.change(bob, f.target("configmaps", "owned-too"), ownedBy(owned, false))
	last := f.change(bob, f.target("configmaps", "made"), ownedBy(owner, true))

	f.remove(bob, maps.In("prod", "mine"))
	deleted := []Target{f.target("configmaps", "owner"), namespaces.In("", "prod"), f.target("customresourcedefinitions", "things.example.com")}
	for _, target := range deleted {
		f.remove(ann, target)
	}
	for _, target := range append(deleted, f.target("configmaps", "owned-too"), f.target("configmaps", "made")) {
		f.eventually(func() error {
			if f.now(target) != nil {
				return errors.New(target.String() + " is still there")
			}
			return nil
		})
	}

	deeds, err := f.c.Reverter.Deeds(f.Context(), Query{}.Bound(historyv1.FieldSince, Moment{Revision: revisionOf(last) + 1}), "ann")
	f.must(err)
	var got []string
	for _, d := range deeds {
		text := d.Verb() + " " + d.Object.Name
		if d.Because != nil {
			text += " because of " + d.Because.Object.Name
		}
		got = append(got, text)
		f.must(f.undo(d))
	}
	want := []string{"create things.example.com", "create one because of things.example.com", "create prod", "create settings because of prod",
		"create owner", "create owned because of owner", "create owned-too because of owned"}
	if !slices.Equal(got, want) {
		t.Errorf("the deeds are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for child, parent := range map[string]string{"owned": "owner", "owned-too": "owned"} {
		o, p := f.now(f.target("configmaps", child)), f.now(f.target("configmaps", parent))
		if o == nil || p == nil || len(o.GetOwnerReferences()) != 1 || o.GetOwnerReferences()[0].UID != p.GetUID() {
			t.Errorf("%s is %v, and %s %v", child, o, parent, p)
		}
	}
	for _, target := range []Target{maps.In("prod", "settings"), things.In("", "one")} {
		if f.now(target) == nil {
			t.Errorf("%s is not there", target)
		}
	}
}

func (f *fixture) kind(name string) Kind {
	f.Helper()
	k, err := f.c.Kinds.Find(name)
	f.must(err)
	return k
}

// write creates an object in any namespace.
func (f *fixture) write(c *Client, t Target, text string) {
	f.Helper()
	object := f.parse(text)
	_, err := c.Reverter.endpoint(t, object).Create(f.Context(), object, metav1.CreateOptions{})
	f.must(err)
}

// undo undoes a deed.
func (f *fixture) undo(d *Deed) error {
	step, err := f.c.Reverter.UndoDeed(f.Context(), d)
	if err == nil {
		_, err = f.c.Reverter.Do(f.Context(), step, false)
	}
	if err != nil {
		return fmt.Errorf("undo %s: %w", d.Object.Name, err)
	}
	return nil
}

// ownedBy adds an owner reference.
func ownedBy(owner *unstructured.Unstructured, controller bool) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &controller}})
	}
}
