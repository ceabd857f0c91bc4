package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}

// Define adds the custom resource of a CustomResourceDefinition in the form of plinth's log.
func (l *Layout) Define(stored []byte) error {
	var crd struct {
		Spec struct {
			Group string                                        `json:"group"`
			Scope apiextensionsv1.ResourceScope                 `json:"scope"`
			Names apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(stored, &crd); err != nil {
		return err
	}
	name := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	l.add(&resource{
		name: name, path: name.Group + "/" + name.Resource + "/", kind: crd.Spec.Names.Kind,
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	})
	return nil
}

type typeMeta struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

// relayout returns a custom resource with its fields in the order that the log requires. What is below
// metadata and other fields stays the same, byte by byte.
func (p place) relayout(value []byte) (stored []byte, from schema.GroupVersion, err error) {
	var head typeMeta
	var fields, metadata map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return nil, from, fmt.Errorf("its JSON cannot be read: %w", err)
	}
	if err := json.Unmarshal(value, &head); err != nil {
		return nil, from, fmt.Errorf("its JSON cannot be read: %w", err)
	}
	if err := json.Unmarshal(fields["metadata"], &metadata); err != nil {
		return nil, from, fmt.Errorf("its metadata cannot be read: %w", err)
	}
	if from, err = schema.ParseGroupVersion(head.APIVersion); err != nil {
		return nil, from, err
	}
	if head.Kind != p.kind || from.Group != p.resource.name.Group {
		return nil, from, fmt.Errorf("it is a %s of %s, not a %s of %s", head.Kind, head.APIVersion, p.kind, p.resource.name.Group)
	}
	if head.Metadata.Name != p.name || head.Metadata.Namespace != p.namespace {
		return nil, from, errMoved
	}
	delete(metadata, "resourceVersion")
	delete(metadata, "selfLink")
	stored, err = layOut(fields, metadata)
	return stored, from, err
}

func layOut(fields, metadata map[string]json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range []string{"kind", "apiVersion"} {
		writeMember(&b, name, fields[name])
		delete(fields, name)
	}
	delete(fields, "metadata")
	b.WriteString(`,"metadata":{`)
	writeMembers(&b, metadata)
	b.WriteByte('}')
	writeMembers(&b, fields)
	b.WriteByte('}')
	var compact bytes.Buffer // in case another program than a kube-apiserver has written it
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

func writeMembers(b *bytes.Buffer, members map[string]json.RawMessage) {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		writeMember(b, name, members[name])
	}
}

func writeMember(b *bytes.Buffer, name string, value json.RawMessage) {
	if b.Bytes()[b.Len()-1] != '{' {
		b.WriteByte(',')
	}
	quoted, _ := json.Marshal(name) // a string can be encoded
	b.Write(quoted)
	b.WriteByte(':')
	b.Write(value)
}
