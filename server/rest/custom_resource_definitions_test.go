package rest_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestDefinitions changes CustomResourceDefinitions, and looks at their conditions and their
// objects.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/
func TestDefinitions(t *testing.T) {
	onEachDialect(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		h.t = t
		h.serveDefinitions()
		for i, test := range []struct {
			name string
			run  func(c definitionCase)
		}{
			{"a changed schema applies to objects that exist", definitionCase.changeSchema},
			{"watches end when the schema changes", definitionCase.endWatches},
			{"the next update of an object writes it in the new storage version", definitionCase.changeStorage},
			{"a version that is no longer served is not found", definitionCase.stopServing},
			{"names in use are not accepted until they are free", definitionCase.conflict},
			{"a definition in a protected group has a condition about its approval", definitionCase.approve},
			{"a definition is removed after its last instance", definitionCase.delete},
			{"instances are deleted with their definition when no version is served", definitionCase.deleteUnserved},
			{"an object that another server stores after the definition's end is deleted", definitionCase.stragglers},
			{"a built-in resource keeps its name", definitionCase.builtin},
			{"watches send objects in the version of the request", definitionCase.watch},
		} {
			t.Run(test.name, func(t *testing.T) {
				own := *h
				own.t = t
				test.run(definitionCase{&own, fmt.Sprintf("g%d.example.com", i)})
			})
		}
	})
}

// definitionCase has an API group of its own.
type definitionCase struct {
	*harness
	group string
}

func (c definitionCase) path(version, rest string) string {
	return "/apis/" + c.group + "/" + version + "/namespaces/default/widgets" + rest
}

func (c definitionCase) widget(name, spec string) string {
	return `{"apiVersion":"` + c.group + `/v1","kind":"Widget","metadata":{"name":"` + name + `"},"spec":{` + spec + `}}`
}

// change patches the definition and returns when the change is in effect.
func (c definitionCase) change(patch string, done func() bool) {
	c.t.Helper()
	c.do("PATCH", definitionsPath+"/widgets."+c.group, strings.ReplaceAll(patch, "GROUP", c.group), "Content-Type", "application/json-patch+json").want(200)
	c.until("the change is in effect", done)
}

const specOfV1 = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"

func (c definitionCase) changeSchema() {
	c.define(widgets(c.t, c.group))
	c.do("POST", c.path("v1", ""), c.widget("a", `"color":"red","text":"a"`)).want(201)
	c.change(`[{"op":"add","path":"`+specOfV1+`fresh","value":{"type":"string","default":"new"}},{"op":"remove","path":"`+specOfV1+`text"}]`,
		func() bool { return c.do("GET", c.path("v1", "/a"), "").get("spec", "fresh") == "new" })
	a := c.do("GET", c.path("v1", ""), "").want(200)
	if got := a.get("items", "0", "spec"); got != `{"color":"red","fresh":"new","max":10,"min":1}` {
		c.t.Errorf("listed %s", got)
	}
	before := c.do("GET", c.path("v1", "/a"), "").get("metadata", "resourceVersion")
	patched := c.do("PATCH", c.path("v1", "/a"), `{}`, "Content-Type", "application/merge-patch+json").want(200)
	if patched.get("metadata", "resourceVersion") == before {
		c.t.Error("an update that changes nothing did not store the object anew")
	}
	c.do("PATCH", c.path("v1", "/a"), `{"metadata":{"labels":{"x":"y"}}}`, "Content-Type", "application/merge-patch+json").want(200)
}

func (c definitionCase) endWatches() {
	c.define(widgets(c.t, c.group))
	resp, err := http.Get(c.http.URL + c.path("v1", "?watch=1&timeoutSeconds=300"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	c.do("PATCH", definitionsPath+"/widgets."+c.group, `{"metadata":{"labels":{"only":"metadata"}}}`, "Content-Type", "application/merge-patch+json").want(200)
	c.do("POST", c.path("v1", ""), c.widget("a", `"color":"red"`)).want(201)
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"ADDED"`) {
		c.t.Fatalf("got %q, %v", lines.Text(), lines.Err())
	}
	c.change(`[{"op":"add","path":"`+specOfV1+`fresh","value":{"type":"string"}}]`, func() bool { return true })
	if lines.Scan() {
		c.t.Errorf("after the change came %s", lines.Text())
	}
}

func (c definitionCase) changeStorage() {
	c.define(widgets(c.t, c.group))
	c.do("POST", c.path("v1", ""), c.widget("a", `"color":"red","text":"a"`)).want(201)
	c.change(`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/2/storage","value":true}]`,
		func() bool {
			return c.do("GET", definitionsPath+"/widgets."+c.group, "").get("status", "storedVersions") == `["v1","v1alpha1"]`
		})
	stored := func() string { return string(c.store.Get("/registry/" + c.group + "/widgets/default/a").Value) }
	c.until("the update is stored in the new version", func() bool {
		c.do("PATCH", c.path("v1", "/a"), `{}`, "Content-Type", "application/merge-patch+json").want(200)
		return strings.HasPrefix(stored(), `{"kind":"Widget","apiVersion":"`+c.group+`/v1alpha1",`)
	})
	a := c.do("GET", c.path("v1", "/a"), "").want(200)
	if a.get("apiVersion") != c.group+"/v1" || a.get("spec", "text") != "a" {
		c.t.Errorf("got %s", a.body)
	}
	c.do("GET", c.path("v1alpha1", "/a"), "").want(200)
}

func (c definitionCase) stopServing() {
	c.define(widgets(c.t, c.group))
	c.do("GET", c.path("v1alpha1", ""), "").want(200)
	c.change(`[{"op":"replace","path":"/spec/versions/2/served","value":false}]`,
		func() bool { return c.do("GET", c.path("v1alpha1", ""), "").code == 404 })
	if a := c.do("GET", c.path("v1alpha1", ""), ""); a.body != "404 page not found\n" {
		c.t.Errorf("got %q", a.body)
	}
}

// named is a small definition with the given names.
func (c definitionCase) named(plural, kind, short string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + plural + "." + c.group + `"},
		"spec":{"group":"` + c.group + `","scope":"Cluster","names":{"plural":"` + plural + `","kind":"` + kind + `","shortNames":["` + short + `"]},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
}

func (c definitionCase) conflict() {
	c.define(c.named("foos", "Foo", "f"))
	second := "bars." + c.group
	c.do("POST", definitionsPath, c.named("bars", "Foo", "f")).want(201)
	c.until("names are refused", func() bool { return c.condition(second, "NamesAccepted") == "False" })
	a := c.do("GET", definitionsPath+"/"+second, "")
	for _, want := range []string{`"reason":"ListKindConflict"`, `"message":"\"FooList\" is already in use"`, `"reason":"NotAccepted"`} {
		if !strings.Contains(a.body, want) {
			c.t.Errorf("no %s in %s", want, a.body)
		}
	}
	c.do("GET", "/apis/"+c.group+"/v1/bars", "").want(404)
	c.do("DELETE", definitionsPath+"/foos."+c.group, "").want(200)
	c.until("names are granted", func() bool { return c.condition(second, "Established") == "True" })
	c.do("GET", "/apis/"+c.group+"/v1/bars", "").want(200)
}

func (c definitionCase) approve() {
	c.group = "test.k8s.io"
	definition := strings.Replace(c.named("foos", "Foo", "f"), `"name":"foos.`, `"annotations":{"api-approved.kubernetes.io":"unapproved, for a test"},"name":"foos.`, 1)
	c.define(definition)
	const condition = "KubernetesAPIApprovalPolicyConformant"
	c.until("the condition is there", func() bool { return c.condition("foos."+c.group, condition) == "False" })
}

func (c definitionCase) delete() {
	c.define(widgets(c.t, c.group))
	name := definitionsPath + "/widgets." + c.group
	c.do("POST", c.path("v1", ""), c.widget("a", `"color":"red"`)).want(201)
	c.do("POST", c.path("v1", ""), strings.Replace(c.widget("b", `"color":"red"`), `"name":"b"`, `"name":"b","finalizers":["example.com/hold"]`, 1)).want(201)
	other := c.do("DELETE", name, `{"preconditions":{"uid":"x"}}`).want(409).get("message")
	if !strings.Contains(other, ": precondition failed: UID in precondition: x, UID in object meta: ") {
		c.t.Errorf("with another UID: %s", other)
	}
	a := c.do("DELETE", name, "").want(200)
	if a.get("metadata", "finalizers") != `["customresourcecleanup.apiextensions.k8s.io"]` || !strings.Contains(a.body, `"reason":"InstanceDeletionPending"`) {
		c.t.Errorf("got %s", a.body)
	}
	c.until("only the object with a finalizer is left", func() bool {
		return c.do("GET", c.path("v1", ""), "").get("items", "1") == ""
	})
	c.until("nothing is created", func() bool { return c.do("POST", c.path("v1", ""), c.widget("c", `"color":"red"`)).code == 403 })
	const refused = ` is forbidden: create not allowed while custom resource definition is terminating`
	if got := c.do("POST", c.path("v1", ""), c.widget("c", `"color":"red"`)).want(403).get("message"); got != "widgets."+c.group+` "c"`+refused {
		c.t.Errorf("message %q", got)
	}
	apply := c.do("PATCH", c.path("v1", "/c")+"?fieldManager=m", c.widget("c", `"color":"red"`), "Content-Type", "application/apply-patch+yaml")
	if got := apply.want(403).get("message"); got != "widgets."+c.group+` "c"`+refused {
		c.t.Errorf("message of an apply %q", got)
	}
	c.do("PATCH", c.path("v1", "/b"), `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json").want(200)
	c.until("the definition is gone", func() bool { return c.do("GET", name, "").code == 404 })
	c.until("the resource is gone", func() bool { return c.do("GET", c.path("v1", ""), "").code == 404 })
	c.define(widgets(c.t, c.group))
	if got := c.do("GET", c.path("v1", ""), "").want(200).get("items"); got != "[]" {
		c.t.Errorf("a definition of the same name has %s", got)
	}
}

func (c definitionCase) deleteUnserved() {
	c.define(widgets(c.t, c.group))
	c.do("POST", c.path("v1", ""), c.widget("a", `"color":"red"`)).want(201)
	c.change(`[{"op":"replace","path":"/spec/versions/0/served","value":false},{"op":"replace","path":"/spec/versions/1/served","value":false},
		{"op":"replace","path":"/spec/versions/2/served","value":false}]`,
		func() bool { return c.do("GET", c.path("v1", ""), "").code == 404 })
	c.do("DELETE", definitionsPath+"/widgets."+c.group, "").want(200)
	c.until("the definition is gone", func() bool { return c.do("GET", definitionsPath+"/widgets."+c.group, "").code == 404 })
	if e := c.store.Get("/registry/" + c.group + "/widgets/default/a"); e != nil {
		c.t.Errorf("left behind: %s", e.Value)
	}
}

func (c definitionCase) builtin() {
	const policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
	c.group = "networking.k8s.io"
	definition := strings.Replace(c.named("networkpolicies", "NetworkPolicy", "np"), `"name":"networkpolicies.`,
		`"annotations":{"api-approved.kubernetes.io":"unapproved, for a test"},"name":"networkpolicies.`, 1)
	c.do("POST", policies, `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"podSelector":{}}}`).want(201)
	c.define(definition)
	c.do("PUT", policies+"/a", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`).want(200)
	c.do("DELETE", definitionsPath+"/networkpolicies."+c.group, "").want(200)
	c.until("the definition is gone", func() bool { return c.do("GET", definitionsPath+"/networkpolicies."+c.group, "").code == 404 })
	c.do("GET", policies+"/a", "").want(200)
}

func (c definitionCase) watch() {
	c.define(widgets(c.t, c.group))
	resp, err := http.Get(c.http.URL + c.path("v1alpha1", "?watch=1&timeoutSeconds=300"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	c.do("POST", c.path("v1", ""), c.widget("a", `"color":"red"`)).want(201)
	c.do("PATCH", c.path("v1", "/a"), `{"spec":{"color":"blue"}}`, "Content-Type", "application/merge-patch+json").want(200)
	c.do("DELETE", c.path("v1", "/a"), "").want(200)
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"ADDED", "MODIFIED", "DELETED"} {
		if !lines.Scan() {
			c.t.Fatal(lines.Err())
		}
		if !strings.HasPrefix(lines.Text(), `{"type":"`+want+`","object":{"`) || !strings.Contains(lines.Text(), `"apiVersion":"`+c.group+`/v1alpha1"`) {
			c.t.Errorf("want %s, got %s", want, lines.Text())
		}
	}
}

// stragglers stores an object after its definition was removed, as another server does that has not
// seen the removal yet.
func (c definitionCase) stragglers() {
	c.define(widgets(c.t, c.group))
	c.do("POST", c.path("v1", ""), c.widget("old", `"color":"red"`)).want(201)
	key := "/registry/" + c.group + "/widgets/default/old"
	value := object.Unsplice(c.store.Get(key))
	c.do("DELETE", definitionsPath+"/widgets."+c.group, "").want(200)
	c.until("the definition is gone", func() bool { return c.do("GET", definitionsPath+"/widgets."+c.group, "").code == 404 })
	if _, err := c.store.Commit(c.t.Context(), sqlstore.Change{Key: key, Value: value}); err != nil {
		c.t.Fatal(err)
	}
	c.define(widgets(c.t, c.group))
	c.do("POST", c.path("v1", ""), c.widget("new", `"color":"red"`)).want(201)
	c.until("the straggler has gone", func() bool { return c.do("GET", c.path("v1", "/old"), "").code == 404 })
	if a := c.do("GET", c.path("v1", ""), "").want(200); a.get("items", "0", "metadata", "name") != "new" || a.get("items", "1") != "" {
		c.t.Errorf("listed %s", a.body)
	}
}

// TestDefinitionsOnReplicas wants a custom resource that is defined through one server to be served
// by the others on the same database.
func TestDefinitionsOnReplicas(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		first, second := newHarnessOn(t, dsn, awayOnOthers, rest.Options{}), newHarnessOn(t, dsn, awayOnOthers, rest.Options{})
		first.serveDefinitions()
		second.serveDefinitions()
		first.define(widgets(t, "example.com"))
		here := definitionCase{second, "example.com"}
		second.until("the resource is served", func() bool {
			return second.do("POST", here.path("v1", ""), here.widget("a", `"color":"red"`)).code == 201
		})
		first.do("GET", here.path("v1", "/a"), "").want(200)
		second.do("DELETE", definitionsPath+"/widgets.example.com", "").want(200)
		first.until("the resource is gone", func() bool { return first.do("GET", here.path("v1", ""), "").code == 404 })
	})
}
