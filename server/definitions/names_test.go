package definitions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type names = apiextensionsv1.CustomResourceDefinitionNames

func namesOf(plural, singular, kind, listKind string, short ...string) names {
	return names{Plural: plural, Singular: singular, Kind: kind, ListKind: listKind, ShortNames: short}
}

// TestGrantNames decides on names against those of the group's other definitions. The rows
// with a sentence have it from the documentation of the API's fields.
// https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/
func TestGrantNames(t *testing.T) {
	foos := namesOf("foos", "foo", "Foo", "FooList", "f")
	for _, test := range []struct {
		name       string
		want, have names   // of the definition
		taken      []names // by others of the group
		granted    names
		condition  string
	}{
		{
			name: "nobody else is in the group",
			want: foos, granted: foos, condition: "True NoConflicts: no conflicts found",
		},
		{
			name: "NamesAccepted means the names chosen do not conflict with others in the group",
			want: foos, taken: []names{namesOf("bars", "bar", "Bar", "BarList", "b")}, granted: foos, condition: "True NoConflicts: no conflicts found",
		},
		{
			name: "a plural that is another's singular", taken: []names{namesOf("bars", "foos", "Bar", "BarList")},
			want: foos, granted: namesOf("", "foo", "Foo", "FooList", "f"), condition: `False PluralConflict: "foos" is already in use`,
		},
		{
			name: "a singular that is another's short name", taken: []names{namesOf("bars", "bar", "Bar", "BarList", "foo")},
			want: foos, granted: namesOf("foos", "", "Foo", "FooList", "f"), condition: `False SingularConflict: "foo" is already in use`,
		},
		{
			name: "a short name that is another's: short names are granted all or none", taken: []names{namesOf("bars", "bar", "Bar", "BarList", "f")},
			want: namesOf("foos", "foo", "Foo", "FooList", "f", "fo"), granted: namesOf("foos", "foo", "Foo", "FooList"),
			condition: `False ShortNamesConflict: "f" is already in use`,
		},
		{
			name: "all short names that are taken are in the message", taken: []names{namesOf("f", "bar", "Bar", "BarList", "fo")},
			want: namesOf("foos", "foo", "Foo", "FooList", "f", "fo"), granted: namesOf("foos", "foo", "Foo", "FooList"),
			condition: `False ShortNamesConflict: ["f" is already in use, "fo" is already in use]`,
		},
		{
			name: "a kind that is another's list kind", taken: []names{namesOf("bars", "bar", "Bar", "Foo")},
			want: foos, granted: namesOf("foos", "foo", "", "FooList", "f"), condition: `False KindConflict: "Foo" is already in use`,
		},
		{
			name: "a list kind that is another's kind", taken: []names{namesOf("bars", "bar", "FooList", "BarList")},
			want: foos, granted: namesOf("foos", "foo", "Foo", "", "f"), condition: `False ListKindConflict: "FooList" is already in use`,
		},
		{
			name: "of several conflicts the last is told", taken: []names{namesOf("foos", "bar", "Foo", "BarList")},
			want: foos, granted: namesOf("", "foo", "", "FooList", "f"), condition: `False KindConflict: "Foo" is already in use`,
		},
		{
			name: "resources and kinds do not conflict with each other", taken: []names{namesOf("Foo", "FooList", "foos", "foo")},
			want: foos, granted: foos, condition: "True NoConflicts: no conflicts found",
		},
		{
			name: "the short names that a definition has do not conflict with those that it wants", have: foos,
			want: namesOf("foos", "foo", "Foo", "FooList", "fo", "f"), granted: namesOf("foos", "foo", "Foo", "FooList", "fo", "f"),
			condition: "True NoConflicts: no conflicts found",
		},
		{
			name: "a singular that is the definition's own short name", have: foos,
			want: namesOf("foos", "f", "Foo", "FooList", "f"), granted: foos, condition: `False SingularConflict: "f" is already in use`,
		},
		{
			name: "acceptedNames may be different than the names in spec", taken: []names{namesOf("bars", "bar", "Bar", "BarList", "b")},
			want: namesOf("foos", "bar", "Foo", "FooList", "b"), have: foos,
			granted: foos, condition: `False ShortNamesConflict: "b" is already in use`,
		},
		{
			name: "names that are granted stay so, even if another has them too", taken: []names{foos},
			want: foos, have: foos, granted: foos, condition: "True NoConflicts: no conflicts found",
		},
		{
			name: "a short name is given up", have: foos,
			want: namesOf("foos", "foo", "Foo", "FooList"), granted: namesOf("foos", "foo", "Foo", "FooList"), condition: "True NoConflicts: no conflicts found",
		},
		{
			name: "resources are grouped in categories that several definitions share", taken: []names{{Plural: "bars", Categories: []string{"all"}}},
			want: names{Plural: "foos", Categories: []string{"all"}}, granted: names{Plural: "foos", Categories: []string{"all"}},
			condition: "True NoConflicts: no conflicts found",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Spec.Names, crd.Status.AcceptedNames = test.want, test.have
			var peers []*apiextensionsv1.CustomResourceDefinition
			for _, taken := range test.taken {
				peer := &apiextensionsv1.CustomResourceDefinition{}
				peer.Status.AcceptedNames = taken
				peers = append(peers, peer)
			}
			granted, c := grantNames(crd, peers)
			if diff := cmp.Diff(test.granted, granted); diff != "" {
				t.Errorf("granted (-want +got):\n%s", diff)
			}
			if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != test.condition {
				t.Errorf("NamesAccepted is %s, want %s", got, test.condition)
			}
		})
	}
}

// accepted and refused are conditions by type, as fixture.conditions has them.
var (
	accepted = map[string]string{"NamesAccepted": "True NoConflicts", "Established": "True InitialNamesAccepted"}
	refused  = map[string]string{"NamesAccepted": "False ShortNamesConflict", "Established": "False NotAccepted"}
)

func short(list ...string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = list }
}

func (f *fixture) wantConditions(when, name string, want map[string]string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.conditions(name)); diff != "" {
		f.t.Errorf("%s: conditions of %s (-want +got):\n%s", when, name, diff)
	}
}

// Names are granted in one write, and Established is set in a second when the registry
// serves the resource, so that clients which see the condition can create objects.
func TestEstablished(t *testing.T) {
	f := openFixture(t)
	const name = "foos." + group
	f.create(definition("foos", "Foo"))
	f.follow()
	f.work(f.d.names, f.d.reconcileNames)
	f.wantConditions("names granted", name, map[string]string{"NamesAccepted": "True NoConflicts", "Established": "False Installing"})
	f.d.names.Add(name)
	f.work(f.d.names, f.d.reconcileNames)
	f.wantConditions("the registry has not followed", name, map[string]string{"NamesAccepted": "True NoConflicts", "Established": "False Installing"})
	f.follow()
	if err := f.add("foos", "Foo", "a"); err != nil {
		t.Errorf("create: %v", err)
	}
	f.work(f.d.names, f.d.reconcileNames)
	f.wantConditions("the registry has followed", name, accepted)
	revision := f.api.Store.Revision()
	f.d.names.Add(name)
	if f.catchUp(); f.api.Store.Revision() != revision {
		t.Error("a definition that is established was written again")
	}
}

// "A resource is established when all names are accepted without a conflict for the first
// time. A resource stays established until deleted, even during a later NamesAccepted due to
// changed names."
func TestStaysEstablished(t *testing.T) {
	f := openFixture(t)
	f.define(definition("foos", "Foo", short("f")))
	f.define(definition("bars", "Bar", short("b")))
	f.patch("bars."+group, `[{"op":"replace","path":"/spec/names/shortNames/0","value":"f"}]`)
	f.catchUp()
	f.wantConditions("a name that is taken", "bars."+group, map[string]string{"NamesAccepted": "False ShortNamesConflict", "Established": "True InitialNamesAccepted"})
	if diff := cmp.Diff([]string{"v1 bars Bar b", "v1 foos Foo f"}, f.served()); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

// Names are free when the definition that has them is deleted or gives them up.
func TestNamesAreFreed(t *testing.T) {
	for _, test := range []struct {
		name   string
		free   func(f *fixture)
		served []string
	}{
		{"deleted", func(f *fixture) { f.end("foos." + group) }, []string{"v1 bars Bar f"}},
		{"given up", func(f *fixture) {
			f.patch("foos."+group, `[{"op":"replace","path":"/spec/names/shortNames/0","value":"fo"}]`)
		}, []string{"v1 bars Bar f", "v1 foos Foo fo"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := openFixture(t)
			f.define(definition("foos", "Foo", short("f")))
			f.define(definition("bars", "Bar", short("f")))
			f.wantConditions("taken", "bars."+group, refused)
			if diff := cmp.Diff([]string{"v1 foos Foo f"}, f.served()); diff != "" {
				t.Fatalf("served (-want +got):\n%s", diff)
			}
			test.free(f)
			f.catchUp()
			f.wantConditions("free", "bars."+group, accepted)
			if diff := cmp.Diff(test.served, f.served()); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

// Names conflict within their group only.
func TestNamesOfOtherGroups(t *testing.T) {
	f := openFixture(t)
	f.define(definition("foos", "Foo", short("f")))
	f.define(definition("foos", "Foo", short("f"), func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Name, crd.Spec.Group = "foos.other.example.com", "other.example.com"
	}))
	f.wantConditions("another group", "foos.other.example.com", accepted)
}

// "For CRDs inside those groups, the condition will be true if the annotation
// api-approved.kubernetes.io is set to a URL, otherwise it will be false." The API refuses to
// create a definition without the annotation, but a stored one may lack it.
func TestApproval(t *testing.T) {
	for _, test := range []struct{ group, annotation, want string }{
		{"x.k8s.io", "https://github.com/kubernetes/kubernetes/pull/1", "True ApprovedAnnotation"},
		{"x.kubernetes.io", "https://github.com/kubernetes/kubernetes/pull/1", "True ApprovedAnnotation"},
		{"x.k8s.io", "unapproved, for a test", "False UnapprovedAnnotation"},
		{"x.k8s.io", "yes", "False InvalidAnnotation"},
		{"x.k8s.io", "", "False MissingAnnotation"},
		{"example.com", "https://github.com/kubernetes/kubernetes/pull/1", ""},
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		crd.Spec.Group = test.group
		if test.annotation != "" {
			crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation] = test.annotation
		}
		changed, again := approve(crd), approve(crd)
		if got := conditionsOf(crd)["KubernetesAPIApprovalPolicyConformant"]; got != test.want || changed != (test.want != "") || again {
			t.Errorf("%s with %q: condition %q, want %q; changed %v, and again %v", test.group, test.annotation, got, test.want, changed, again)
		}
	}
}

// A conversion webhook whose bundle of certificates cannot be read keeps a definition from
// being established, until the bundle is corrected.
func TestInvalidBundle(t *testing.T) {
	crd := definition("foos", "Foo")
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue}}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("no certificate")},
		},
	}
	for i, changes := range []bool{true, false} {
		if changed := establish(crd); changed != changes || conditionsOf(crd)["Established"] != "False InvalidCABundle" {
			t.Errorf("%d: changed %v, conditions %v", i, changed, conditionsOf(crd))
		}
	}
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
	if !establish(crd) || conditionsOf(crd)["Established"] != "True InitialNamesAccepted" {
		t.Errorf("corrected: conditions %v", conditionsOf(crd))
	}
}
