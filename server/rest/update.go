package rest

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// update replaces an object, or a subresource of it.
func (q *request) update() error {
	data, err := q.body()
	if err != nil {
		return err
	}
	options := &metav1.UpdateOptions{}
	err = q.options("UpdateOptions", options, &options.TypeMeta, func() field.ErrorList { return validation.ValidateUpdateOptions(options) })
	if err != nil {
		return err
	}
	media, err := q.inputMedia(q.r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	body, err := q.decode(media, data, fieldValidation(options.FieldValidation))
	if err != nil {
		return err
	}
	m, err := meta.Accessor(body)
	if err != nil {
		return err
	}
	if err := q.checkIdentity(m); err != nil {
		return err
	}
	dedupOwners(m, q.warn, duplicateOwners)
	mod := modification{
		q:       q,
		options: options,
		uid:     m.GetUID(),
		creates: q.createsOnUpdate(),
		body: func(_ context.Context, old runtime.Object) (runtime.Object, error) {
			return q.track(old, body.DeepCopyObject(), options.FieldManager), nil
		},
	}
	return mod.respond()
}
