package rest

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
)

// merge makes the new body of a server-side apply: old with what the configuration says
// and without what its manager applied before and doesn't any more. nil: there is no
// object yet.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/
func (p *patching) merge(_ context.Context, old runtime.Object) (runtime.Object, error) {
	q := p.q
	if err := q.checkBodyNesting(p.patch); err != nil {
		return nil, err
	}
	config, err := decodeConfiguration(p.patch, q.api.o.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	live := old
	if old == nil {
		if live, err = q.codec().NewVersioned(q.gvk().GroupVersion()); err != nil {
			return nil, err
		}
	}
	force := p.options.Force != nil && *p.options.Force
	obj, err := q.fields().Apply(live, &unstructured.Unstructured{Object: config}, p.options.FieldManager, force)
	if err != nil {
		return nil, plain(err)
	}
	if err := p.reportTwice(); err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if old == nil && m.GetUID() != "" {
		return nil, errors.NewConflict(q.groupResource(), q.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", m.GetUID()))
	}
	return obj, q.checkIdentity(m)
}

// decodeConfiguration reads YAML, of which JSON is a part that can be read much faster.
// Both ways keep integers apart from floats, which objects without Go types depend on.
// limit is how long it may be with its aliases filled in, in bytes.
func decodeConfiguration(patch []byte, limit int64) (config map[string]any, err error) {
	if bytes.HasPrefix(patch, openObject) && kjson.UnmarshalCaseSensitivePreserveInts(patch, &config) == nil {
		return config, nil
	}
	if err := checkAliases(patch, limit); err != nil {
		return nil, err
	}
	config = map[string]any{}
	if err := yaml.Unmarshal(patch, &config); err != nil {
		return nil, errors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	return config, nil
}

var openObject = []byte("{")

// reportTwice makes a warning or an error of fields that a configuration has twice.
// Unknown fields need no such thing: they cannot be merged.
func (p *patching) reportTwice() error {
	if !p.strict() {
		return nil
	}
	if bytes.HasPrefix(p.patch, openObject) {
		if twice, err := kjson.UnmarshalStrict(p.patch, &map[string]any{}); err == nil && len(twice) == 0 {
			return nil
		}
	}
	err := yaml.UnmarshalStrict(p.patch, &map[string]any{})
	if err == nil {
		return nil
	}
	if p.options.FieldValidation == metav1.FieldValidationStrict {
		return errors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
	}
	p.q.warnStrict([]error{err})
	return nil
}

// plain keeps upstream's answer to an error that is no status: its text as it is.
func plain(err error) error {
	if _, ok := err.(errors.APIStatus); ok {
		return err
	}
	return unreasoned(err)
}
