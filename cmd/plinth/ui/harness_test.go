package ui

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
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

func (d *openDoor) guard(*http.Request) error { return nil }
func (d *openDoor) routes(*Server)            {}
func (d *openDoor) leave() string             { return "" }

func (d *openDoor) welcome(http.ResponseWriter, *http.Request, error) bool { return false }
func (d *openDoor) server(*http.Request) string                            { return d.config.Host }

func (d *openDoor) enter(r *http.Request) (string, *clientrest.Config, error) {
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
	server *servertest.Server
	door   *openDoor
	ui     *Server
	page   *httptest.Server
	user   string // who visits; empty: the admin
}

func newWorkbench(t *testing.T, options ...servertest.Options) *workbench {
	t.Helper()
	b := &workbench{T: t, server: servertest.Start(t, options...)}
	b.door = &openDoor{b.server.Config}
	b.ui = New(Options{Base: "/x/", Door: b.door})
	b.page = httptest.NewServer(b.ui)
	t.Cleanup(b.page.Close)
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
	return b.do(b.request(http.MethodGet, path, nil))
}

// post sends a form with some fields, by names and values.
func (b *workbench) post(path string, fields ...string) *reply {
	b.Helper()
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Add(fields[i], fields[i+1])
	}
	return b.submit(path, values)
}

// submit sends a form.
func (b *workbench) submit(path string, values url.Values) *reply {
	b.Helper()
	return b.do(b.request(http.MethodPost, path, strings.NewReader(values.Encode())))
}

// request is what the visitor's browser asks for: a path below the base.
func (b *workbench) request(method, path string, body io.Reader) *http.Request {
	b.Helper()
	r, err := http.NewRequest(method, b.page.URL+"/x/"+strings.TrimPrefix(path, "/x/"), body)
	b.must(err)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("X-Test-User", b.user)
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

// do sends a request. Whatever the page is, it has nothing of an object as a script.
func (b *workbench) do(r *http.Request) *reply {
	b.Helper()
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	b.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	b.must(err)
	a := &reply{b, response.StatusCode, string(text), response.Header.Get("Location")}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		a.hasNot("<script>", "ZgotmplZ")
	}
	return a
}

func (b *workbench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// is checks the status of a reply.
func (a *reply) is(code int) *reply {
	a.Helper()
	if a.code != code {
		a.Fatalf("the page answers %d, not %d: %s", a.code, code, a.html)
	}
	return a
}

// has checks that all texts are on the page, as people read them or as it is sent.
func (a *reply) has(texts ...string) *reply {
	a.Helper()
	for _, text := range texts {
		if !strings.Contains(html.UnescapeString(a.html), text) && !strings.Contains(a.html, text) {
			a.Errorf("%q is not on the page:\n%s", text, mainOf(a.html))
		}
	}
	return a
}

// hasNot checks that none of the texts is in the page as it is sent.
func (a *reply) hasNot(texts ...string) *reply {
	a.Helper()
	for _, text := range texts {
		if strings.Contains(a.html, text) {
			a.Errorf("%q is on the page:\n%s", text, mainOf(a.html))
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
	b.Helper()
	gvr, _ := schema.ParseResourceArg(resource)
	if gvr == nil {
		gvr = &schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	return b.by("", *gvr, namespace)
}

// by is where a user, who may do everything, finds objects; without a name it is the admin.
func (b *workbench) by(user string, resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	b.Helper()
	config := clientrest.CopyConfig(b.server.Config)
	if user != "" {
		config.Impersonate = clientrest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	}
	client, err := dynamic.NewForConfig(config)
	b.must(err)
	if namespace == "" {
		return client.Resource(resource)
	}
	return client.Resource(resource).Namespace(namespace)
}

// make creates an object from YAML, as the admin.
func (b *workbench) make(resource, namespace, text string, args ...any) *unstructured.Unstructured {
	b.Helper()
	return b.create(b.of(resource, namespace), fmt.Sprintf(text, args...))
}

// create creates an object from YAML.
func (b *workbench) create(at dynamic.ResourceInterface, text string) *unstructured.Unstructured {
	b.Helper()
	o := new(unstructured.Unstructured)
	b.must(yaml.Unmarshal([]byte(text), &o.Object))
	created, err := at.Create(b.Context(), o, metav1.CreateOptions{})
	b.must(err)
	return created
}

// set sets a field of an object.
func (b *workbench) set(at dynamic.ResourceInterface, name string, value any, path ...string) *unstructured.Unstructured {
	b.Helper()
	o, err := at.Get(b.Context(), name, metav1.GetOptions{})
	b.must(err)
	b.must(unstructured.SetNestedField(o.Object, value, path...))
	o, err = at.Update(b.Context(), o, metav1.UpdateOptions{FieldManager: "by-hand"})
	b.must(err)
	return o
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

// mainOf is what stands between the frame of a page.
func mainOf(body string) string {
	if i := strings.Index(body, "<main"); i >= 0 {
		body = body[i:]
	}
	body, _, _ = strings.Cut(body, "</main>")
	return body
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
var checkedInput = regexp.MustCompile(`<input type="checkbox" name="([^"]*)" value="([^"]*)" checked>`)

// form returns what the form of a page would send.
func form(a *reply) url.Values {
	values := url.Values{}
	_, body, _ := strings.Cut(a.html, `<form method="post"`)
	for _, re := range []*regexp.Regexp{hiddenInput, checkedInput} {
		for _, m := range re.FindAllStringSubmatch(body, -1) {
			values.Add(m[1], strings.ReplaceAll(strings.ReplaceAll(m[2], "&#43;", "+"), "&amp;", "&"))
		}
	}
	return values
}

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

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

// configMap is an object for tests.
func configMap(name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}, "data": data,
	}}
}
