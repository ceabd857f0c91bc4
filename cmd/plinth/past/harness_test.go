package past

import (
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/servertest"
)

func TestMain(m *testing.M) {
	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
	os.Exit(m.Run())
}

// fixture is a server and clients of it.
type fixture struct {
	*testing.T
	server *servertest.Server
	c      *Client
}

func start(t *testing.T, options ...servertest.Options) *fixture {
	t.Helper()
	server := servertest.Start(t, options...)
	f := &fixture{T: t, server: server}
	f.c = f.client("")
	return f
}

// client returns a client of a user, of the admin without a name.
func (f *fixture) client(user string) *Client {
	f.Helper()
	config := clientrest.CopyConfig(f.server.Config)
	if user != "" {
		config.Impersonate = clientrest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	}
	c, err := New(config, nil)
	f.must(err)
	return c
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// target looks up an object in the namespace default.
func (f *fixture) target(kind, name string) Target {
	f.Helper()
	k, err := f.c.Kinds.Find(kind)
	f.must(err)
	return k.In("default", name)
}

// parse reads an object.
func (f *fixture) parse(text string) *unstructured.Unstructured {
	f.Helper()
	object := new(unstructured.Unstructured)
	f.must(yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

// create creates an object as a user.
func (f *fixture) create(c *Client, kind, text string) *unstructured.Unstructured {
	f.Helper()
	object := f.parse(text)
	created, err := c.Reverter.endpoint(f.target(kind, object.GetName()), object).Create(f.Context(), object, metav1.CreateOptions{})
	f.must(err)
	return created
}

// change reads an object, changes and writes it as a user.
func (f *fixture) change(c *Client, t Target, change func(o *unstructured.Unstructured), subresource ...string) *unstructured.Unstructured {
	f.Helper()
	object := f.now(t)
	change(object)
	out, err := c.Reverter.endpoint(t, object).Update(f.Context(), object, metav1.UpdateOptions{}, subresource...)
	f.must(err)
	return out
}

func (f *fixture) remove(c *Client, t Target) {
	f.Helper()
	f.must(c.Kinds.server.objects.Resource(t.Kind.Resource).Namespace(t.Namespace).Delete(f.Context(), t.Name, metav1.DeleteOptions{}))
}

// now returns the object as it is, nil if it is not there.
func (f *fixture) now(t Target) *unstructured.Unstructured {
	f.Helper()
	object, err := f.c.Reverter.current(f.Context(), t, nil)
	f.must(err)
	return object
}

// do tries and plays a step.
func (f *fixture) do(step *Step, err error) *unstructured.Unstructured {
	f.Helper()
	f.must(err)
	f.must(f.c.Reverter.Try(f.Context(), step))
	object, err := f.c.Reverter.Do(f.Context(), step, false)
	f.must(err)
	return object
}

// eventually waits until something is so.
func (f *fixture) eventually(try func() error) {
	f.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	f.Fatal(err)
}

func configMap(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {k: %q}}", name, value)
}

// set changes a field of the data of a ConfigMap.
func set(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, value, "data", key)
	}
}

func valueOf(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "k")
	return value
}

// Objects with lists whose items have keys.
const (
	// dns has two ports of one number, which only their protocol tells apart, and names that exchange places do.
	dns = `
apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  ports:
  - {name: udp, port: 53, protocol: UDP}
  - {name: tcp, port: 53, protocol: TCP}
`
	// app has a container with variables.
	app = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - {name: app, image: "app:1", env: [{name: A, value: one}, {name: B, value: two}]}
`
	// fleet is a kind with a list of which only the definition says the key, and with conditions that are no status of
	// a subresource.
	fleet = `
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
          ships:
            type: array
            x-kubernetes-list-type: map
            x-kubernetes-list-map-keys: [hull]
            items: {type: object, required: [hull], properties: {hull: {type: integer}, name: {type: string}}}
          status:
            type: object
            properties:
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, required: [type], properties: {type: {type: string}, status: {type: string}}}
`
	ships = `
apiVersion: example.com/v1
kind: Fleet
metadata: {name: ships}
ships: [{hull: 7, name: anna}, {hull: 9, name: bella}]
status: {conditions: [{type: Ready, status: "False"}, {type: Afloat, status: "True"}]}
`
)

// createKeyed creates these objects as a user, and returns them.
func (f *fixture) createKeyed(c *Client) (service, deployment, custom Target) {
	f.Helper()
	f.create(c, "services", dns)
	f.create(c, "deployments", app)
	f.create(c, "customresourcedefinitions", fleet)
	kind, err := c.Kinds.await(f.Context(), "fleets.example.com")
	f.must(err)
	f.c.Kinds.forget()
	custom = kind.In("default", "ships")
	object := f.parse(ships)
	f.eventually(func() error {
		_, err := c.Reverter.endpoint(custom, object).Create(f.Context(), object, metav1.CreateOptions{})
		return err
	})
	return f.target("services", "dns"), f.target("deployments", "app"), custom
}

// edit changes the list at a path.
func edit(change func(items []any) []any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		items, found, err := unstructured.NestedSlice(o.Object, path...)
		if !found || err != nil {
			panic(fmt.Sprint(path, found, err))
		}
		if err := unstructured.SetNestedSlice(o.Object, change(items), path...); err != nil {
			panic(err)
		}
	}
}

// exchange exchanges the places of the first two items, and gives the one that is the first then a field.
func exchange(field, value string) func(items []any) []any {
	return func(items []any) []any {
		items[0], items[1] = items[1], items[0]
		items[0].(map[string]any)[field] = value
		return items
	}
}

// inContainer changes a list of the container app.
func inContainer(list string, change func(items []any) []any) func(*unstructured.Unstructured) {
	return edit(func(containers []any) []any {
		for _, c := range containers {
			if c := c.(map[string]any); c["name"] == "app" {
				c[list] = change(c[list].([]any))
			}
		}
		return containers
	}, "spec", "template", "spec", "containers")
}
