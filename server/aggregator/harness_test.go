package aggregator

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

// fixture has APIServices that do not run: a test makes each step when it wants it, so that no
// test waits for a goroutine. All Services are resolved to one extension server.
type fixture struct {
	t           *testing.T
	api         *apitest.API
	a           *APIServices
	definitions extensionsclient.CustomResourceDefinitionInterface
	answer      *atomic.Int64 // the status code with which the extension server answers
}

func openFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, api: apitest.Open(t), answer: &atomic.Int64{}}
	f.answer.Store(http.StatusOK)
	extension := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(f.answer.Load()))
	}))
	t.Cleanup(extension.Close)
	at, err := url.Parse(extension.URL)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := extensionsclient.NewForConfig(f.api.Config)
	if err != nil {
		t.Fatal(err)
	}
	f.definitions = definitions.CustomResourceDefinitions()
	f.a = f.restart(newServices(t, elsewhere{at}))
	return f
}

func newServices(t *testing.T, at elsewhere) *Services {
	s := New(at, func() (*tls.Certificate, error) { return &tls.Certificate{}, nil }, nil)
	t.Cleanup(s.Close)
	return s
}

// restart returns the APIServices of another server process.
func (f *fixture) restart(extensions *Services) *APIServices {
	f.t.Helper()
	a, err := NewAPIServices(Config{
		Client: f.api.Config, Store: f.api.Store, Kinds: f.api.Kinds, Extensions: extensions,
		Logger: slog.New(slog.NewTextHandler(f.t.Output(), nil)),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(a.names.ShutDown)
	return a
}

// local returns an APIService that names no Service.
func local(name string, priority int32, label string) *apiregistration.APIService {
	gv := groupVersion(name)
	s := &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       apiregistration.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: priority, VersionPriority: 1},
	}
	if label != "" {
		s.Labels = map[string]string{managedLabel: label}
	}
	return s
}

// remote returns an APIService that names the Service ext in the namespace ns.
func remote(name string) *apiregistration.APIService {
	s, port := local(name, 1, ""), int32(443)
	s.Spec.InsecureSkipTLSVerify = true
	s.Spec.Service = &apiregistration.ServiceReference{Namespace: "ns", Name: "ext", Port: &port}
	return s
}

func (f *fixture) create(s *apiregistration.APIService) *apiregistration.APIService {
	f.t.Helper()
	s, err := f.a.api.APIServices().Create(f.t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// get returns a stored APIService, nil if there is none.
func (f *fixture) get(name string) *apiregistration.APIService {
	f.t.Helper()
	s, err := f.a.api.APIServices().Get(f.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) patch(name, patch string) {
	f.t.Helper()
	if _, err := f.a.api.APIServices().Patch(f.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) delete(name string) {
	f.t.Helper()
	if err := f.a.api.APIServices().Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// define creates a definition of widgets in a group. A version that ends in - is not served.
func (f *fixture) define(group string, versions ...string) {
	f.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
		},
	}
	for i, v := range versions {
		name, unserved := strings.CutSuffix(v, "-")
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: !unserved, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}
	if _, err := f.definitions.Create(f.t.Context(), crd, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) reconcile(a *APIServices, name string) {
	f.t.Helper()
	if err := a.reconcile(f.t.Context(), name); err != nil {
		f.t.Fatalf("%s: %v", name, err)
	}
}

// changes returns the changes below a prefix after a revision.
func (f *fixture) changes(prefix string, after int64) (all []*sqlstore.Event) {
	f.t.Helper()
	w, err := f.api.Store.Watch(prefix, prefix, after)
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Close()
	for through := after; through < f.api.Store.Revision(); {
		var events []*sqlstore.Event
		if events, through, err = w.Poll(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		all = append(all, events...)
	}
	return all
}

// queued takes the names out of a queue and returns them, sorted.
func queued(q reconcile.Queue) []string {
	names := []string{}
	for q.Len() > 0 {
		name, _ := q.Get()
		q.Done(name)
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// put stores an object as JSON.
func (f *fixture) put(key, json string) *sqlstore.Event {
	f.t.Helper()
	e, err := f.api.Store.Commit(f.t.Context(), sqlstore.Change{Key: key, Value: []byte(json)})
	if err != nil {
		f.t.Fatal(err)
	}
	return &sqlstore.Event{Type: sqlstore.Put, Entry: e}
}
