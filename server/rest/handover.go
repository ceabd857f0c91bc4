package rest

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/response"
)

// handOver passes a new object (a review, a binding, an eviction) to the Kind or the subresource, and answers with its
// result. Nothing is stored here. Admission is asked as for every create.
func (n creation) handOver(ctx context.Context, obj runtime.Object) error {
	result, err := n.result(ctx, obj)
	if err != nil {
		return err
	}
	if status, ok := result.(*metav1.Status); ok {
		return n.q.respondStatus(http.StatusCreated, status)
	}
	return n.q.respondHub(http.StatusCreated, n.q.codec(), result)
}

// result is the answer of the Kind or the subresource.
func (n creation) result(ctx context.Context, obj runtime.Object) (result runtime.Object, err error) {
	ctx, end := attempt(ctx)
	defer end()
	q, ask := n.q, admitter{n.q}
	name, dry := q.name, dryRun(n.options.DryRun)
	m, err := meta.Accessor(obj)
	if name == "" && err != nil {
		return nil, err
	}
	if name == "" {
		name = m.GetName()
	}
	if err := ask.mutate(ctx, ask.attributes(apiadmission.Create, obj, nil, n.options, name, dry)); err != nil {
		return nil, err
	}
	if m != nil {
		dedupOwners(m, q.warn, duplicateOwnersAdmitted)
	}
	validate := func(ctx context.Context, obj runtime.Object) error {
		return ask.validate(ctx, ask.attributes(apiadmission.Create, obj, nil, n.options, name, dry))
	}
	if q.sub != nil {
		result, err = q.sub.Post.Create(ctx, name, obj, validate, n.options)
	} else {
		result, err = q.kind.Virtual.Create(ctx, obj, validate, n.options)
	}
	if err != nil {
		return nil, inTime(ctx, response.FromRegistry(err))
	}
	return result, nil
}

// respondStatus answers with a Status in whatever form the client wants objects.
func (c *call) respondStatus(code int, status *metav1.Status) error {
	if status.Status != metav1.StatusSuccess {
		return apierrors.FromObject(status)
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Code == 0 {
		status.Code = int32(code)
	}
	return c.respondObject(code, status)
}

// keepsSystemFields tells whether the uid and resourceVersion in a body refer to another object, as in a Binding, and
// so must not be wiped.
func (t *target) keepsSystemFields() bool {
	if t.sub == nil {
		return false
	}
	keeper, ok := t.sub.Post.(apirest.SubresourceObjectMetaPreserver)
	return ok && keeper.PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate()
}

// accepts tells whether a body may be of the version gv.
func (t *target) accepts(gv schema.GroupVersion) bool {
	if t.sub != nil {
		if acceptor, ok := t.sub.Post.(apirest.GroupVersionAcceptor); ok {
			return acceptor.AcceptsGroupVersion(gv)
		}
	}
	return gv == t.gvk().GroupVersion()
}
