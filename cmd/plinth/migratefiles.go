package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// isFile tells whether an output goes to a certain file, by whatever name.
func isFile(output io.Writer, name string) bool {
	f := fileOf(output)
	if f == nil {
		return false
	}
	out, err := f.Stat()
	if err != nil || !out.Mode().IsRegular() {
		return false
	}
	in, err := os.Stat(name)
	return err == nil && os.SameFile(in, out)
}

// objectName says which object of a cluster a document is.
type objectName struct{ group, kind, namespace, name string }

func (o objectName) String() string {
	kind := schema.GroupKind{Group: o.group, Kind: o.kind}
	if o.namespace == "" {
		return fmt.Sprintf("%s %s", kind, o.name)
	}
	return fmt.Sprintf("%s %s/%s", kind, o.namespace, o.name)
}

// duplicates finds objects that several files have.
type duplicates map[objectName]string // the first file that has the object

// add takes in a file and returns a warning for each of its objects that an earlier file has,
// one for each of these files.
func (d duplicates) add(file string, data []byte) (warnings []string) {
	warned := map[string]bool{}
	for _, o := range objectNames(data) {
		first, found := d[o]
		if !found {
			d[o] = file
		} else if first != file && !warned[first] {
			warned[first] = true
			warnings = append(warnings, fmt.Sprintf("%s: %s is in %s too, so it is printed twice; leave one of the files out if it was the output of an earlier run", file, o, first))
		}
	}
	return warnings
}

// objectNames returns the objects of a file. It leaves out documents that cannot be read, because
// their errors have been printed before.
func objectNames(data []byte) (names []objectName) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var o struct {
			metav1.PartialObjectMetadata `json:",inline"`
			Items                        []metav1.PartialObjectMetadata `json:"items"`
		}
		if err := documents.Decode(&o); err != nil {
			return names
		}
		for _, o := range append(o.Items, o.PartialObjectMetadata) {
			if o.Kind != "" && o.Name != "" {
				names = append(names, objectName{o.GroupVersionKind().Group, o.Kind, o.Namespace, o.Name})
			}
		}
	}
}
