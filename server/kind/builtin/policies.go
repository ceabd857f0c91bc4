package builtin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// resolve finds the resource of a policy's paramKind among the served resources.
func (o Options) resolve(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if o.Registry != nil {
		for _, k := range o.Registry.Set().Kinds {
			if k.Group == gvk.Group && k.Kind == gvk.Kind && k.Version(gvk.Version) != nil {
				return gvk.GroupVersion().WithResource(k.Resource), nil
			}
		}
	}
	return schema.GroupVersionResource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// policies reads the policy of a validating binding.
type policies struct{ store *sqlstore.Store }

func (p policies) GetValidatingAdmissionPolicy(_ context.Context, name string) (*admissionregistration.ValidatingAdmissionPolicy, error) {
	policy := &admissionregistration.ValidatingAdmissionPolicy{}
	return policy, readPolicy(p.store, "validatingadmissionpolicies", name, policy)
}

// mutatingPolicies reads the policy of a mutating binding.
type mutatingPolicies struct{ store *sqlstore.Store }

func (p mutatingPolicies) GetMutatingAdmissionPolicy(_ context.Context, name string) (*admissionregistration.MutatingAdmissionPolicy, error) {
	policy := &admissionregistration.MutatingAdmissionPolicy{}
	return policy, readPolicy(p.store, "mutatingadmissionpolicies", name, policy)
}

// readPolicy decodes a policy into its internal version. A nil store has none.
func readPolicy(store *sqlstore.Store, resource, name string, policy runtime.Object) error {
	var e *sqlstore.Entry
	if store != nil {
		e = store.Get(object.Prefix(admissionregistration.GroupName, resource) + name)
	}
	if e == nil {
		return apierrors.NewNotFound(admissionregistration.Resource(resource), name)
	}
	if err := runtime.DecodeInto(legacyscheme.Codecs.UniversalDecoder(), e.Value, policy); err != nil {
		return fmt.Errorf("decode policy %s: %w", name, err)
	}
	return nil
}
