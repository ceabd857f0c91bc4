package ui

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/servertest"
)

// openDoor lets everybody in, as the user that a header names, or as the admin.
type openDoor struct{ config *clientrest.Config }

func (d openDoor) guard(*http.Request) error { return nil }
func (d openDoor) routes(*Server)            {}
func (d openDoor) leave() string             { return "" }

func (d openDoor) welcome(http.ResponseWriter, *http.Request, error) bool { return false }
func (d openDoor) server(*http.Request) string                            { return d.config.Host }

func (d openDoor) enter(r *http.Request) (string, *clientrest.Config, error) {
	config := clientrest.CopyConfig(d.config)
	user := r.Header.Get("X-Test-User")
	if user != "" {
		config.Impersonate = clientrest.ImpersonationConfig{UserName: user}
	}
	return user, config, nil
}

// workbench is a plinth and the page on it.
type workbench struct {
	*testing.T
	server  *servertest.Server
	page    *httptest.Server
	objects dynamic.Interface
	user    string // who visits; empty: the admin
}

func newWorkbench(t *testing.T, options ...servertest.Options) *workbench {
	t.Helper()
	b := &workbench{T: t, server: servertest.Start(t, options...)}
	b.page = httptest.NewServer(New(Options{Base: "/x/", Door: openDoor{b.server.Config}}))
	t.Cleanup(b.page.Close)
	var err error
	if b.objects, err = dynamic.NewForConfig(b.server.Config); err != nil {
		t.Fatal(err)
	}
	return b
}

// as is the workbench for another visitor.
func (b *workbench) as(user string) *workbench {
	other := *b
	other.user = user
	return &other
}

// reply is what the page has answered.
type reply struct {
	*workbench
	code int
	html string // with entities as they are
	at   string // where it redirects to
}

// open asks for a path below the base.
func (b *workbench) open(path string) *reply {
	b.Helper()
	return b.send(http.MethodGet, path, nil)
}

// post sends a form.
func (b *workbench) post(path string, fields ...string) *reply {
	b.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return b.send(http.MethodPost, path, strings.NewReader(form.Encode()))
}

func (b *workbench) send(method, path string, body io.Reader) *reply {
	b.Helper()
	r, err := http.NewRequest(method, b.page.URL+"/x/"+strings.TrimPrefix(path, "/x/"), body)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("X-Test-User", b.user)
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return &reply{b, response.StatusCode, string(text), response.Header.Get("Location")}
}

// is checks the status of an reply.
func (a *reply) is(code int) *reply {
	a.Helper()
	if a.code != code {
		a.Fatalf("the page answers %d, not %d: %s", a.code, code, a.html)
	}
	return a
}

// has checks that all texts are on the page, as people read them.
func (a *reply) has(texts ...string) *reply {
	a.Helper()
	for _, text := range texts {
		if !strings.Contains(html.UnescapeString(a.html), text) {
			a.Errorf("%q is not on the page:\n%s", text, a.html)
		}
	}
	return a
}

// hasNot checks that none of the texts is in the page as it is sent.
func (a *reply) hasNot(texts ...string) *reply {
	a.Helper()
	for _, text := range texts {
		if strings.Contains(a.html, text) {
			a.Errorf("%q is on the page:\n%s", text, a.html)
		}
	}
	return a
}

// field returns the value of an input of the page.
func (a *reply) field(name string) string {
	a.Helper()
	_, rest, ok := strings.Cut(a.html, `name="`+name+`" value="`)
	if !ok {
		a.Fatalf("there is no field %s:\n%s", name, a.html)
	}
	value, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(value)
}

// of is where objects of a resource are: deployments.v1.apps.
func (b *workbench) of(resource, namespace string) dynamic.ResourceInterface {
	gvr, _ := schema.ParseResourceArg(resource)
	if gvr == nil {
		gvr = &schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	if namespace == "" {
		return b.objects.Resource(*gvr)
	}
	return b.objects.Resource(*gvr).Namespace(namespace)
}

// make creates an object from YAML.
func (b *workbench) make(resource, namespace, text string, args ...any) *unstructured.Unstructured {
	b.Helper()
	object := new(unstructured.Unstructured)
	if err := yaml.Unmarshal(fmt.Appendf(nil, text, args...), &object.Object); err != nil {
		b.Fatal(err)
	}
	made, err := b.of(resource, namespace).Create(b.Context(), object, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return made
}

// now returns an object as it is, nil if it is not there.
func (b *workbench) now(resource, namespace, name string) *unstructured.Unstructured {
	b.Helper()
	object, err := b.of(resource, namespace).Get(b.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return object
}

// hostile is text that a page must never take for HTML.
const hostile = `<script>alert("x")</script>'&`

// webApp is a Deployment.
const webApp = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`
