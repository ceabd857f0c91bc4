package rest

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
)

// createUnstored hands what is created to the kind, or to the subresource, which does with
// it what it is for and makes the answer. Admission is asked as about every create.
func (q *request) createUnstored(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) error {
	name, dry := q.name, dryRun(options.DryRun)
	m, err := meta.Accessor(obj)
	if name == "" && err != nil {
		return err
	}
	if name == "" {
		name = m.GetName()
	}
	if err := q.mutate(ctx, q.attributes(admission.Create, obj, nil, options, name, dry)); err != nil {
		return err
	}
	if m != nil {
		q.dedupOwners(m, true)
	}
	validate := func(ctx context.Context, obj runtime.Object) error {
		return q.validate(ctx, q.attributes(admission.Create, obj, nil, options, name, dry))
	}
	var result runtime.Object
	if q.sub != nil {
		result, err = q.sub.Post.Create(ctx, name, obj, validate, options)
	} else {
		result, err = q.kind.Virtual.Create(ctx, obj, validate, options)
	}
	if err != nil {
		return inTime(ctx, plainly(err))
	}
	if status, ok := result.(*metav1.Status); ok {
		return q.respondStatus(http.StatusCreated, status)
	}
	return q.respondHub(http.StatusCreated, q.codec(), result)
}

// respondStatus answers with a Status in whatever form the client wants objects.
func (q *request) respondStatus(code int, status *metav1.Status) error {
	if status.Status != metav1.StatusSuccess {
		return errors.FromObject(status)
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Code == 0 {
		status.Code = int32(code)
	}
	return q.respondObject(code, status)
}

// plainly is the error of an upstream registry, whose messages that are no statuses are
// answered as they are.
func plainly(err error) error {
	if statusOf(err).Reason == metav1.StatusReasonInternalError {
		return plain(err)
	}
	return err
}

// keepsSystemFields tells whether the metadata of a body says which object is meant, as a
// binding's uid and resourceVersion do, and not what is to be stored.
func (q *request) keepsSystemFields() bool {
	if q.sub == nil {
		return false
	}
	keeper, ok := q.sub.Post.(rest.SubresourceObjectMetaPreserver)
	return ok && keeper.PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate()
}

// accepts tells whether a body may be of this version.
func (q *request) accepts(gv schema.GroupVersion) bool {
	if q.sub != nil {
		if acceptor, ok := q.sub.Post.(rest.GroupVersionAcceptor); ok {
			return acceptor.AcceptsGroupVersion(gv)
		}
	}
	return gv == q.gvk().GroupVersion()
}
