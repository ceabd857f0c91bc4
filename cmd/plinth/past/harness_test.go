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
	c, err := New(config)
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
	k, err := f.c.FindKind(kind)
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
	created, err := c.endpoint(f.target(kind, object.GetName()), object).Create(f.Context(), object, metav1.CreateOptions{})
	f.must(err)
	return created
}

// change reads an object, changes and writes it as a user.
func (f *fixture) change(c *Client, t Target, change func(o *unstructured.Unstructured), subresource ...string) *unstructured.Unstructured {
	f.Helper()
	object := f.now(t)
	change(object)
	out, err := c.endpoint(t, object).Update(f.Context(), object, metav1.UpdateOptions{}, subresource...)
	f.must(err)
	return out
}

func (f *fixture) remove(c *Client, t Target) {
	f.Helper()
	f.must(c.objects.Resource(t.Kind.Resource).Namespace(t.Namespace).Delete(f.Context(), t.Name, metav1.DeleteOptions{}))
}

// now returns the object as it is, nil if it is not there.
func (f *fixture) now(t Target) *unstructured.Unstructured {
	f.Helper()
	object, err := f.c.current(f.Context(), t, nil)
	f.must(err)
	return object
}

// do tries and plays a step.
func (f *fixture) do(step *Step, err error) *unstructured.Unstructured {
	f.Helper()
	f.must(err)
	f.must(f.c.Try(f.Context(), step))
	object, err := f.c.Do(f.Context(), step, false)
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
