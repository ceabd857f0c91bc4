package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/custom"
)

// definitions are CustomResourceDefinitions with a registry that serves them.
type definitions struct {
	t     testing.TB
	kinds *kind.Registry
	now   map[string]*defined
}

// defined is one definition: what can be read of it, and what the registry has.
type defined struct {
	json  atomic.Pointer[[]byte]
	reads atomic.Int64
	kinds []*kind.Kind
}

func newDefinitions(t testing.TB) *definitions {
	d := &definitions{t: t, kinds: kind.NewRegistry(builtin.Priorities()), now: map[string]*defined{}}
	d.kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	return d
}

// toy is a definition of kind Toy as the server stores it. The schemas of its versions are
// given by name.
func toy(group string, schemas map[string]string) *apiextensionsv1.CustomResourceDefinition {
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "toys", Singular: "toy", Kind: "Toy", ListKind: "ToyList"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "toys." + group, UID: types.UID("uid of " + group), Generation: 1},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: names},
	}
	for _, version := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[version]
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := json.Unmarshal([]byte(schema), props); err != nil {
			panic(err)
		}
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: len(crd.Spec.Versions) == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
		})
	}
	return crd
}

// store makes crd what is read, and nothing else.
func (d *definitions) store(crd *apiextensionsv1.CustomResourceDefinition) *defined {
	d.t.Helper()
	text, err := json.Marshal(crd)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.now[crd.Name] == nil {
		d.now[crd.Name] = &defined{}
	}
	d.now[crd.Name].json.Store(&text)
	return d.now[crd.Name]
}

// put makes crd what is read and what is served.
func (d *definitions) put(crd *apiextensionsv1.CustomResourceDefinition) {
	d.t.Helper()
	now := d.store(crd)
	definition, err := custom.Decode(*now.json.Load())
	if err != nil {
		d.t.Fatal(err)
	}
	converters, err := custom.NewConverters(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(converters.Close)
	read := func() ([]byte, error) {
		now.reads.Add(1)
		if text := now.json.Load(); text != nil {
			return *text, nil
		}
		return nil, fmt.Errorf("it is gone: %w", kind.ErrReplaced)
	}
	kinds, _, err := custom.Kinds(definition, read, converters, make(chan struct{}))
	if err != nil {
		d.t.Fatal(err)
	}
	d.kinds.Replace(now.kinds, kinds)
	now.kinds = kinds
}

// remove takes the definition away and leaves the registry as it is, until the function
// that it returns is called.
func (d *definitions) remove(name string) (settle func()) {
	now := d.now[name]
	delete(d.now, name)
	now.json.Store(nil)
	return func() { d.kinds.Replace(now.kinds, nil) }
}

// suite is as many definitions as a cluster with many operators has: each of its own
// group, with fifty fields that are described, status and scale.
func suite(t testing.TB, n int) (*definitions, []*apiextensionsv1.CustomResourceDefinition) {
	d := newDefinitions(t)
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for i := range 50 {
		fields[fmt.Sprintf("field%d", i)] = apiextensionsv1.JSONSchemaProps{Type: "string",
			Description: fmt.Sprintf("Field %d says what is to become of the part of that number, which the operator looks after.", i)}
	}
	schema, err := json.Marshal(apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: fields}, "status": {Type: "object", Properties: fields},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for i := range n {
		crd := toy(fmt.Sprintf("group%03d.example.com", i), map[string]string{"v1": string(schema)})
		crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.field0", StatusReplicasPath: ".status.field0"},
		}
		crds = append(crds, crd)
	}
	return d, crds
}
