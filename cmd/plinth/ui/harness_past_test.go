package ui

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/servertest"
)

// pastDoor lets everybody in with the credentials that a test has chosen.
type pastDoor struct{ config *clientrest.Config }

func (d *pastDoor) guard(*http.Request) error { return nil }
func (d *pastDoor) enter(*http.Request) (string, *clientrest.Config, error) {
	return d.config.Impersonate.UserName, d.config, nil
}
func (d *pastDoor) routes(*Server) {}
func (d *pastDoor) leave() string  { return "" }

func (d *pastDoor) welcome(http.ResponseWriter, *http.Request, error) bool { return false }
func (d *pastDoor) server(*http.Request) string                            { return d.config.Host }

// pastFixture is a server, and its page.
type pastFixture struct {
	*testing.T
	server *servertest.Server
	door   *pastDoor
	page   *Server
}

func startPast(t *testing.T, options ...servertest.Options) *pastFixture {
	t.Helper()
	server := servertest.Start(t, options...)
	door := &pastDoor{server.Config}
	return &pastFixture{t, server, door, New(Options{Base: "/x/", Door: door})}
}

// as is the configuration of a user, who may do everything if he is in a group for that.
func (f *pastFixture) as(user string, groups ...string) *clientrest.Config {
	config := clientrest.CopyConfig(f.server.Config)
	config.Impersonate = clientrest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// of returns the way to objects as a user, of the admin without a name.
func (f *pastFixture) of(user string, resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	f.Helper()
	config := f.server.Config
	if user != "" {
		config = f.as(user, "system:masters")
	}
	client, err := dynamic.NewForConfig(config)
	f.must(err)
	if namespace == "" {
		return client.Resource(resource)
	}
	return client.Resource(resource).Namespace(namespace)
}

func (f *pastFixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// create creates an object from YAML.
func (f *pastFixture) create(at dynamic.ResourceInterface, text string) *unstructured.Unstructured {
	f.Helper()
	o := new(unstructured.Unstructured)
	f.must(yaml.Unmarshal([]byte(text), &o.Object))
	created, err := at.Create(context.Background(), o, metav1.CreateOptions{})
	f.must(err)
	return created
}

// set sets a field of an object.
func (f *pastFixture) set(at dynamic.ResourceInterface, name string, value any, path ...string) *unstructured.Unstructured {
	f.Helper()
	o, err := at.Get(context.Background(), name, metav1.GetOptions{})
	f.must(err)
	f.must(unstructured.SetNestedField(o.Object, value, path...))
	o, err = at.Update(context.Background(), o, metav1.UpdateOptions{FieldManager: "by-hand"})
	f.must(err)
	return o
}

// answer is what the page says.
type answer struct {
	code     int
	body     string
	location string
}

// get asks for a page as a browser does.
func (f *pastFixture) get(path string) answer {
	return f.do(httptest.NewRequest(http.MethodGet, "/x/"+path, nil))
}

// post sends a form.
func (f *pastFixture) post(path string, form url.Values) answer {
	r := httptest.NewRequest(http.MethodPost, "/x/"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return f.do(r)
}

func (f *pastFixture) do(r *http.Request) answer {
	f.Helper()
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	f.page.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	f.must(err)
	return answer{w.Code, string(body), w.Header().Get("Location")}
}

// wants checks that an answer has a code, and some texts.
func (f *pastFixture) wants(a answer, code int, texts ...string) {
	f.Helper()
	if a.code != code {
		f.Errorf("the answer is %d, not %d: %s", a.code, code, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			f.Errorf("the page does not have %q:\n%s", text, mainOf(a.body))
		}
	}
	if strings.Contains(a.body, "<script>") || strings.Contains(a.body, "ZgotmplZ") {
		f.Errorf("the page has what an object has as HTML:\n%s", mainOf(a.body))
	}
}

// lacks checks that a page does not have some texts.
func (f *pastFixture) lacks(a answer, texts ...string) {
	f.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			f.Errorf("the page has %q:\n%s", text, mainOf(a.body))
		}
	}
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
func form(a answer) url.Values {
	values := url.Values{}
	_, body, _ := strings.Cut(a.body, `<form method="post"`)
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
