package rest

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/sqlstore"
)

// update replaces an object, or the part of it that a subresource is.
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
	media, err := q.inputMedia()
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
	q.dedupOwners(m, false)
	return q.modifyAndRespond(modification{
		options: options,
		uid:     m.GetUID(),
		body: func(context.Context, runtime.Object) (runtime.Object, error) {
			return body.DeepCopyObject(), nil
		},
	})
}

// checkIdentity makes sure that a body is about the object that the path names.
func (q *request) checkIdentity(m metav1.Object) error {
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(q.namespace, m); err != nil {
		return err
	}
	if m.GetName() == "" {
		return errors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: %v", q.name, "name must be provided"))
	}
	if m.GetName() != q.name {
		return errors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), q.name))
	}
	return nil
}

func (q *request) modifyAndRespond(mod modification) error {
	entry, created, err := q.modify(q.rulesContext(), &mod)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	if q.sub != nil && q.sub.View != nil {
		return q.respondView(code, entry)
	}
	return q.respondEntry(code, entry)
}

// strategy is the rules that an update through this path obeys.
func (q *request) strategy() rest.RESTUpdateStrategy {
	if q.sub != nil && q.sub.Update != nil {
		return q.sub.Update
	}
	return q.kind.Update
}

// load decodes an entry to an object of the caller's own; nil for no entry.
func (q *request) load(e *sqlstore.Entry) (runtime.Object, error) {
	if e == nil {
		return nil, nil
	}
	e, err := q.convertedEntry(e)
	if err != nil {
		return nil, err
	}
	return loadEntry(q.kind, e)
}
