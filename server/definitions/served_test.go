package definitions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestServed changes one definition step by step. The registry follows each change, and
// watches end only where the documentation of a Kind says so.
func TestServed(t *testing.T) {
	f := openFixture(t)
	const name = "widgets." + group
	f.create(definition("widgets", "Widget", func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = append(crd.Spec.Versions, version("v2", false))
	}))
	f.follow()
	if got := f.served(); got != nil {
		t.Errorf("before the names are granted: %v is served", got)
	}
	f.catchUp()
	if diff := cmp.Diff([]string{"v1 widgets Widget", "v2 widgets Widget"}, f.served()); diff != "" {
		t.Fatalf("created (-want +got):\n%s", diff)
	}
	for _, step := range []struct {
		name, patch string
		want        []string
		replaced    bool
	}{
		{"a label", `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`,
			[]string{"v1 widgets Widget", "v2 widgets Widget"}, false},
		{"a changed schema", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"x"}]`,
			[]string{"v1 widgets Widget", "v2 widgets Widget"}, true},
		{"a version that is not served any more", `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`,
			[]string{"v1 widgets Widget"}, true},
		{"a version that is added", `[{"op":"replace","path":"/spec/versions/1/name","value":"v3"},{"op":"replace","path":"/spec/versions/1/served","value":true}]`,
			[]string{"v1 widgets Widget", "v3 widgets Widget"}, true},
		{"a short name", `[{"op":"add","path":"/spec/names/shortNames","value":["wi"]}]`,
			[]string{"v1 widgets Widget wi", "v3 widgets Widget wi"}, true},
		{"no version is served", `[{"op":"replace","path":"/spec/versions/0/served","value":false},{"op":"replace","path":"/spec/versions/1/served","value":false}]`,
			nil, true},
		{"a version is served again", `[{"op":"replace","path":"/spec/versions/0/served","value":true}]`,
			[]string{"v1 widgets Widget wi"}, true},
	} {
		before := f.d.served[name].gone
		f.patch(name, step.patch)
		f.catchUp()
		if diff := cmp.Diff(step.want, f.served()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if isClosed(before) != step.replaced {
			t.Errorf("%s: watches end: %v, want %v", step.name, isClosed(before), step.replaced)
		}
	}
	before := f.d.served[name].gone
	f.end(name)
	f.catchUp()
	if got := f.served(); got != nil || !isClosed(before) {
		t.Errorf("after the deletion %v is served, watches end: %v", got, isClosed(before))
	}
}

func isClosed(gone <-chan struct{}) bool {
	select {
	case <-gone:
		return true
	default:
		return false
	}
}

// Load and the read after lost changes bring the registry in line in one step, whatever
// happened in between.
func TestReadAnew(t *testing.T) {
	f := openFixture(t)
	f.define(definition("widgets", "Widget"))
	f.define(definition("gadgets", "Gadget"))
	f.patch("widgets."+group, `[{"op":"add","path":"/spec/versions/-","value":{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}}]`)
	f.end("gadgets." + group)
	generation := f.api.Kinds.Set().Generation
	if err := f.d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1 widgets Widget", "v2 widgets Widget"}, f.served()); diff != "" {
		t.Errorf("read anew (-want +got):\n%s", diff)
	}
	if n := f.api.Kinds.Set().Generation - generation; n != 1 {
		t.Errorf("the registry was changed %d times, not once", n)
	}
}

// A built-in resource takes precedence over a definition with its name.
func TestBuiltinIsServed(t *testing.T) {
	f := openFixture(t)
	f.define(definition("networkpolicies", "NetworkPolicy", func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Name, crd.Spec.Group = "networkpolicies.networking.k8s.io", "networking.k8s.io"
		crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"}
	}))
	if got := f.conditions("networkpolicies.networking.k8s.io")["Established"]; got != "True InitialNamesAccepted" {
		t.Errorf("Established is %s", got)
	}
	if k := f.api.Kinds.Lookup("networking.k8s.io", "v1", "networkpolicies"); k == nil || k.Custom != nil {
		t.Errorf("%v is served", k)
	}
}

// A definition that is being deleted refuses creates, and its watches go on.
func TestTerminatingIsServed(t *testing.T) {
	f := openFixture(t)
	f.define(definition("widgets", "Widget"))
	before := f.d.served["widgets."+group]
	crd := f.get("widgets." + group)
	setTerminating(crd, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "")
	if err := f.d.statuses.update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	f.follow()
	k := f.api.Kinds.Lookup(group, "v1", "widgets")
	if k == nil || !k.Custom.Terminating {
		t.Fatalf("%v is served", k)
	}
	if isClosed(before.gone) || isClosed(k.Gone()) {
		t.Error("watches end")
	}
	if err := f.add("widgets", "Widget", "a"); err == nil {
		t.Error("an object was created")
	}
}

// A Kind keeps no bytes of its definition. What it reads is the definition as it is now.
func TestSource(t *testing.T) {
	f := openFixture(t)
	f.define(definition("widgets", "Widget"))
	read := f.d.source("widgets." + group)
	f.patch("widgets."+group, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)
	if json, err := read(); err != nil || string(json) != string(f.api.Store.Get(custom.DefinitionPrefix+"widgets."+group).Value) {
		t.Errorf("got %s, %v", json, err)
	}
	f.end("widgets." + group)
	if json, err := read(); err == nil {
		t.Errorf("after the deletion: %s", json)
	}
}

// Objects that were stored before the schema changed may lack its defaults. A server that has
// read a changed definition does not know when the schema changed and assumes now.
func TestStaleObjects(t *testing.T) {
	f := openFixture(t)
	f.define(definition("widgets", "Widget"))
	f.mustAdd("widgets", "Widget", "a")
	e := f.api.Store.Get(object.Prefix(group, "widgets") + "a")
	stale := func(kinds *kind.Registry) bool {
		return kinds.Lookup(group, "v1", "widgets").Stale(e.Value, e.Revision, e.At)
	}
	if stale(f.api.Kinds) {
		t.Error("an object is stale under the first schema")
	}
	f.patch("widgets."+group, `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"x"}]`)
	f.catchUp()
	if !stale(f.api.Kinds) {
		t.Error("an object is not stale under the second schema")
	}
	config := f.d.config
	config.Kinds = kind.NewRegistry(nil)
	other, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer other.names.ShutDown()
	defer other.instances.ShutDown()
	defer other.converters.Close()
	if err := other.Load(t.Context()); err != nil || !stale(config.Kinds) {
		t.Errorf("an object is not stale for another server; error %v", err)
	}
}
