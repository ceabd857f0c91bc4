package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/pkg/kubeapiserver"
)

// encodings has the form in which a kube-apiserver of plinth's release stores the objects of each built-in
// resource.
type encodings map[*resource]encoding

type encoding struct {
	version schema.GroupVersion
	to      runtime.Encoder
}

// encodingsOf reads the version of each resource from upstream's own table. It often differs from plinth's:
// it is the newest version that the previous release can read.
func encodingsOf(l *Layout) (encodings, error) {
	upstream := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(compatibility.NewEffectiveVersionFromString(release, "", ""))
	versions := resourceconfig.MergeResourceEncodingConfigs(upstream.DefaultResourceEncoding, upstream.ResourceEncodingOverrides)
	all := encodings{}
	for _, r := range l.byName {
		if r.builtin == nil {
			continue
		}
		e, err := r.encoding(versions)
		if err != nil {
			return nil, fmt.Errorf("the version in which %s are stored: %w", r.name, err)
		}
		all[r] = e
	}
	return all, nil
}

// jsonGroups are the groups whose servers inside kube-apiserver store JSON, and the versions that they store.
// apiextensions uses v1beta1, because definitions are smaller in it than in v1.
var jsonGroups = map[string]string{
	"apiextensions.k8s.io":   "v1beta1",
	"apiregistration.k8s.io": "v1",
}

func (r *resource) encoding(versions *serverstorage.DefaultResourceEncodingConfig) (encoding, error) {
	if version := jsonGroups[r.name.Group]; version != "" {
		return encoding{schema.GroupVersion{Group: r.name.Group, Version: version}, r.builtin.json}, nil
	}
	version, err := versions.BackwardCompatibileStorageEncodingFor(r.name, r.builtin.codec.New())
	return encoding{version, r.builtin.protobuf}, err
}

// encode returns a value of plinth's log as a kube-apiserver stores it, before encryption, and its version if
// that differs from the log's.
func (e encodings) encode(p place, stored []byte) (value []byte, converted string, err error) {
	if p.builtin == nil {
		value, err := sorted(stored)
		return value, "", err
	}
	hub, err := p.builtin.codec.Load(stored)
	if err != nil {
		return nil, "", err
	}
	how := e[p.resource]
	obj, err := p.builtin.codec.Versioned(hub, how.version)
	if err != nil {
		return nil, "", fmt.Errorf("convert to %s: %w", how.version, err)
	}
	var b bytes.Buffer
	if err := how.to.Encode(obj, &b); err != nil {
		return nil, "", fmt.Errorf("encode in %s: %w", how.version, err)
	}
	if how.version != p.builtin.stored.GroupVersion() {
		converted = how.version.String()
	}
	return b.Bytes(), converted, nil
}

// sorted returns a custom resource with its fields sorted by name, as a kube-apiserver writes it. The values
// stay the same, byte by byte.
func sorted(stored []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(stored, &fields); err != nil {
		return nil, fmt.Errorf("its JSON cannot be read: %w", err)
	}
	b := bytes.NewBufferString("{")
	writeMembers(b, fields)
	b.WriteString("}\n")
	return b.Bytes(), nil
}
