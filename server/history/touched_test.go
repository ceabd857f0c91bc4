package history_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/dialects/logtest"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/servertest"
)

// resourceOf is a resource, written deployments.v1.apps.
func resourceOf(text string) schema.GroupVersionResource {
	r, _ := schema.ParseResourceArg(text)
	return *r
}

// put creates an object of YAML, or updates it, and returns its resourceVersion.
func (p *past) put(resource, text string) string {
	p.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		p.t.Fatal(err)
	}
	var c dynamic.ResourceInterface = dynamic.NewForConfigOrDie(p.config).Resource(resourceOf(resource))
	if !strings.HasPrefix(resource, "customresourcedefinitions") {
		c = dynamic.NewForConfigOrDie(p.config).Resource(resourceOf(resource)).Namespace("shop")
	}
	there, err := c.Get(p.t.Context(), object.GetName(), metav1.GetOptions{})
	var out *unstructured.Unstructured
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err != nil {
			out, err = c.Create(p.t.Context(), object, metav1.CreateOptions{})
		} else {
			object.SetResourceVersion(there.GetResourceVersion())
			out, err = c.Update(p.t.Context(), object, metav1.UpdateOptions{})
		}
		if err == nil {
			return out.GetResourceVersion()
		}
		if time.Since(begin) > time.Minute { // until the kind is served
			p.t.Fatal(err)
		}
	}
}

const fleets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: fleets, kind: Fleet}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          ships: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [hull],
            items: {type: object, required: [hull], properties: {hull: {type: integer}, name: {type: string}}}}
          conditions: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type],
            items: {type: object, required: [type], properties: {type: {type: string}, status: {type: string}}}}
          log: {type: array, items: {type: string}}
`

// TestTouched changes items of lists that have keys, and reads which fields that touched in each way in which a version
// can be read.
func TestTouched(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		srv := servertest.Start(t, servertest.Options{DSN: d.Fresh(t)})
		p := &past{t, srv.Config, kubernetes.NewForConfigOrDie(srv.Config)}
		must[*corev1.Namespace](t)(p.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))
		service := func(ports string) string {
			return "{apiVersion: v1, kind: Service, metadata: {name: dns}, spec: {clusterIP: None, ports: [" + ports + "]}}"
		}
		deployment := func(env string) string {
			return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [" +
				"{name: app, image: x, env: [" + env + "]}]}}}}"
		}
		fleet := func(ships, conditions, log string) string {
			return "{apiVersion: example.com/v1, kind: Fleet, metadata: {name: ships}, ships: [" + ships + "], conditions: [" + conditions + "], log: [" + log + "]}"
		}
		p.put("customresourcedefinitions.v1.apiextensions.k8s.io", fleets)
		const services, deployments, custom = "services.v1.", "deployments.v1.apps", "fleets.v1.example.com"
		first := p.put(services, service("{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53, protocol: TCP}"))
		p.put(deployments, deployment("{name: A, value: one}, {name: B, value: two}"))
		p.put(custom, fleet("{hull: 7, name: anna}, {hull: 9}", "{type: Ready, status: 'no'}", "a"))
		want := map[string][]string{}
		note := func(version string, touched ...string) { want[version] = touched }
		note(p.put(services, service("{name: tcp, port: 53, protocol: TCP}, {name: renamed, port: 53, protocol: UDP}")),
			`spec.ports[port=53,protocol="TCP"]`, `spec.ports[port=53,protocol="UDP"].name`)
		note(p.put(services, service("{name: web, port: 80, protocol: TCP}, {name: renamed, port: 53, protocol: UDP}")),
			`spec.ports[port=80,protocol="TCP"]`, `spec.ports[port=53,protocol="TCP"]`)
		note(p.put(deployments, deployment("{name: C}, {name: B, value: three}, {name: A, value: one}")),
			`spec.template.spec.containers[name="app"].env[name="C"]`, `spec.template.spec.containers[name="app"].env[name="B"]`,
			`spec.template.spec.containers[name="app"].env[name="B"].value`)
		last := p.put(custom, fleet("{hull: 9}, {hull: 7, name: bella}", "{type: Done, status: 'yes'}, {type: Ready, status: 'yes'}", "b, a"))
		note(last, `conditions[type="Done"]`, `conditions[type="Ready"].status`, "log", "ships[hull=9]", "ships[hull=7].name")

		for _, path := range []string{
			"namespaces/shop/versions?fieldSelector=" + selecting("with=touched", "action=changed"), // what is before is not on the page
			"namespaces/shop/versions?fieldSelector=" + selecting("with=touched"),
			"namespaces/shop/versions?limit=1&fieldSelector=" + selecting("with=touched"),
			"namespaces/shop/versions?limit=2&fieldSelector=" + selecting("with=touched", "since="+first),
		} {
			if diff := p.touchedOf(path, want); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
		one := map[string][]string{}
		for version, touched := range want {
			var v historyv1.Version
			if err := p.get("namespaces/shop/versions/"+version, &v); err != nil || !slices.Equal(v.Touched, touched) {
				t.Errorf("version %s: %q, %v", version, v.Touched, err)
			}
			if v.Object.Name == "dns" {
				one[version] = touched
			}
		}
		if diff := p.touchedOf("namespaces/shop/versions?fieldSelector="+selecting("with=touched", "object.resource=services", "object.name=dns", "object.kind=Service"), one); diff != "" {
			t.Error(diff)
		}
		p.watchTouched(first, want)
		for name, selector := range map[string]string{"a state has no change": selecting("with=touched", "at="+last), "nobody has asked": ""} {
			if diff := p.touchedOf("namespaces/shop/versions?fieldSelector="+selector, nil); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}

// touchedOf says in what the fields that versions name differ from those that are wanted; nothing of others is.
func (p *past) touchedOf(path string, want map[string][]string) string {
	p.t.Helper()
	left := len(want)
	for token := ""; ; {
		var list historyv1.VersionList
		if err := p.get(path+"&continue="+token, &list); err != nil {
			p.t.Fatal(err)
		}
		for _, v := range list.Items {
			if _, ok := want[v.Name]; ok {
				left--
			} else if v.Object.Name != "dns" && v.Object.Name != "app" && v.Object.Name != "ships" {
				continue // what controllers do
			}
			if !slices.Equal(v.Touched, want[v.Name]) || v.MoreTouched != 0 {
				return fmt.Sprintf("version %s of %s, %s: %q and %d more, want %q", v.Name, v.Object.Name, v.Action, v.Touched, v.MoreTouched, want[v.Name])
			}
		}
		if token = list.Continue; token == "" {
			break
		}
	}
	if left != 0 {
		return fmt.Sprintf("%d versions are missing", left)
	}
	return ""
}

// watchTouched follows the versions after the first one, until all that are wanted have come.
func (p *past) watchTouched(first string, want map[string][]string) {
	p.t.Helper()
	path := "/apis/history.plinth.io/v1/namespaces/shop/versions?watch=true&resourceVersion=" + first + "&fieldSelector=" + selecting("with=touched")
	stream, err := p.client.CoreV1().RESTClient().Get().RequestURI(path).Stream(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	defer stream.Close()
	d := json.NewDecoder(stream)
	for left := len(want); left > 0; {
		var ev struct{ Object historyv1.Version }
		if err := d.Decode(&ev); err != nil {
			p.t.Fatal(err)
		}
		if touched, ok := want[ev.Object.Name]; ok {
			left--
			if !slices.Equal(ev.Object.Touched, touched) {
				p.t.Errorf("watch: version %s: %q, want %q", ev.Object.Name, ev.Object.Touched, touched)
			}
		}
	}
}

// TestTouchedBounds has a change of very many fields, of which some are named and the rest counted.
func TestTouchedBounds(t *testing.T) {
	p := open(t)
	p.fill()
	for _, text := range []string{"a", "b"} {
		m := p.configMap("wide", "")
		m.Data = map[string]string{}
		for i := range 10_000 {
			m.Data[fmt.Sprintf("key-%05d", i)] = text
		}
		var err error
		if text == "a" {
			m, err = p.client.CoreV1().ConfigMaps("shop").Create(t.Context(), m, metav1.CreateOptions{})
		} else {
			m, err = p.client.CoreV1().ConfigMaps("shop").Update(t.Context(), m, metav1.UpdateOptions{})
		}
		var v historyv1.Version
		if err := p.get("namespaces/shop/versions/"+must[*corev1.ConfigMap](t)(m, err).ResourceVersion, &v); err != nil {
			t.Fatal(err)
		}
		switch {
		case text == "a" && (v.Touched != nil || v.MoreTouched != 0):
			t.Errorf("created: %q and %d more", v.Touched, v.MoreTouched)
		case text == "b" && (len(v.Touched) != 100 || v.Touched[99] != "data.key-00099" || v.MoreTouched != 9900):
			t.Errorf("changed: %d, and %d more", len(v.Touched), v.MoreTouched)
		}
	}
}

// TestTouchedForgotten has a version whose predecessor is not kept: what the change touched is not known, and not guessed.
func TestTouchedForgotten(t *testing.T) {
	p := open(t)
	versions := p.fill()
	var v historyv1.Version
	if err := p.get("namespaces/shop/versions/"+versions[2], &v); err != nil || !slices.Equal(v.Touched, []string{"data.v"}) {
		t.Fatalf("%q, %v", v.Touched, err)
	}
	err := p.client.CoreV1().RESTClient().Delete().AbsPath("/apis/history.plinth.io/v1/namespaces/shop/versions").
		Param("fieldSelector", "object.resource=configmaps,object.name=a").Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	v = historyv1.Version{}
	if err := p.get("namespaces/shop/versions/"+versions[2], &v); err != nil || v.Touched != nil || v.Data.Raw == nil {
		t.Errorf("%+v, %v", v, err)
	}
}
