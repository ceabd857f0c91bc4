package definitions

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	client "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

const group = "example.com"

// fixture has Definitions that do not run: a test makes each step when it wants it, so that
// no test waits for a goroutine.
type fixture struct {
	t    *testing.T
	api  *apitest.API
	d    *Definitions
	crds client.CustomResourceDefinitionInterface
	rest clientrest.Interface

	revision int64 // up to which the changes were handled
}

func openFixture(t *testing.T) *fixture {
	t.Helper()
	api := apitest.Open(t)
	d, err := New(Config{
		Client: api.Config, Store: api.Store, Kinds: api.Kinds, DeleteAll: api.DeleteAll,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.names.ShutDown()
		d.instances.ShutDown()
		d.converters.Close()
	})
	typed, err := client.NewForConfig(api.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, api: api, d: d, crds: typed.CustomResourceDefinitions(), rest: typed.RESTClient()}
}

// definition returns a definition of that plural and kind with one version, changed by edits.
func definition(plural, kind string, edits ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true)},
		},
	}
	for _, edit := range edits {
		edit(crd)
	}
	return crd
}

func version(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	yes := true
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes},
		},
	}
}

func (f *fixture) create(crd *apiextensionsv1.CustomResourceDefinition) {
	f.t.Helper()
	if _, err := f.crds.Create(f.t.Context(), crd, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// define creates a definition and makes the steps until it is served.
func (f *fixture) define(crd *apiextensionsv1.CustomResourceDefinition) {
	f.t.Helper()
	f.create(crd)
	f.catchUp()
}

// get returns a stored definition, nil if there is none.
func (f *fixture) get(name string) *apiextensionsv1.CustomResourceDefinition {
	f.t.Helper()
	crd, err := f.crds.Get(f.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		f.t.Fatal(err)
	}
	return crd
}

func (f *fixture) patch(name, patch string) {
	f.t.Helper()
	if _, err := f.crds.Patch(f.t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) delete(name string) {
	f.t.Helper()
	if err := f.crds.Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// end deletes a definition at once, as somebody does who takes its finalizer away.
func (f *fixture) end(name string) {
	f.t.Helper()
	f.delete(name)
	f.patch(name, `[{"op":"remove","path":"/metadata/finalizers"}]`)
}

// follow handles the changes of definitions since the last call.
func (f *fixture) follow() {
	f.t.Helper()
	w, err := f.api.Store.Watch(custom.DefinitionPrefix, custom.DefinitionPrefix, f.revision)
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Close()
	for f.revision < f.api.Store.Revision() {
		var events []*sqlstore.Event
		if events, f.revision, err = w.Poll(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		for _, ev := range events {
			f.d.handle(ev)
		}
	}
}

// catchUp handles changes and grants names until nothing is left to do.
func (f *fixture) catchUp() {
	f.t.Helper()
	for f.follow(); f.d.names.Len() > 0; f.follow() {
		f.work(f.d.names, f.d.reconcileNames)
	}
}

// terminate makes one round over the definitions that are being deleted.
func (f *fixture) terminate() {
	f.t.Helper()
	for f.d.instances.Len() > 0 {
		f.work(f.d.instances, f.d.deleteInstances)
	}
	f.catchUp()
}

func (f *fixture) work(queue reconcile.Queue, do func(context.Context, string) error) {
	f.t.Helper()
	name, _ := queue.Get()
	defer queue.Done(name)
	if err := do(f.t.Context(), name); err != nil {
		f.t.Fatalf("%s: %v", name, err)
	}
}

// add creates an object of a custom resource in version v1.
func (f *fixture) add(plural, kind, name string, finalizers ...string) error {
	body, err := json.Marshal(&metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: group + "/v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
	})
	if err != nil {
		return err
	}
	return f.rest.Post().AbsPath("/apis/"+group+"/v1/"+plural).
		SetHeader("Content-Type", "application/json").Body(body).Do(f.t.Context()).Error()
}

// served returns the versions and names of the group's resources in the registry.
func (f *fixture) served() (list []string) {
	for _, k := range f.api.Kinds.Set().Kinds {
		if k.Group == group {
			list = append(list, strings.Join(append([]string{k.Versions[0].Name, k.Resource, k.Kind}, k.ShortNames...), " "))
		}
	}
	slices.Sort(list)
	return list
}

// conditions returns the conditions of a definition as type=status reason, by type.
func (f *fixture) conditions(name string) map[string]string {
	f.t.Helper()
	return conditionsOf(f.get(name))
}

func conditionsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	if crd == nil {
		return nil
	}
	conditions := map[string]string{}
	for _, c := range crd.Status.Conditions {
		conditions[string(c.Type)] = string(c.Status) + " " + c.Reason
	}
	return conditions
}
