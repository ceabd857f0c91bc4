package manifest

import (
	"context"
	"errors"
	"slices"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// adjust changes what conversion leaves alone although the current version needs another form.
func adjust(obj runtime.Object) {
	if crd, ok := obj.(*apiextensions.CustomResourceDefinition); ok {
		keepUnknown(crd)
	}
}

// keepUnknown adds to the schemas of a definition that fields outside the schema are kept,
// if that was the default in v1beta1. A definition without a schema kept everything.
func keepUnknown(crd *apiextensions.CustomResourceDefinition) {
	keeps := true
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			v.Schema = &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &keeps,
			}}
		}
		if root := v.Schema.OpenAPIV3Schema; crd.Spec.PreserveUnknownFields {
			root.XPreserveUnknownFields = &keeps
			if root.Type == "" {
				root.Type = "object"
			}
		}
	}
	crd.Spec.PreserveUnknownFields = false
}

// stricter are the kinds whose current version refuses objects that the old one accepted,
// according to the migration guide.
var stricter = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
}

var kinds = sync.OnceValue(func() []*kind.Kind { return builtin.Kinds(builtin.Options{}) })

// check finds what the current version refuses.
func check(obj runtime.Object) error {
	gk := obj.GetObjectKind().GroupVersionKind().GroupKind()
	if !slices.Contains(stricter, gk) {
		return nil
	}
	i := slices.IndexFunc(kinds(), func(k *kind.Kind) bool { return k.Group == gk.Group && k.Kind == gk.Kind })
	k := kinds()[i]
	hub, err := k.Codec.Hub(obj.DeepCopyObject())
	if err != nil {
		return err
	}
	gv := obj.GetObjectKind().GroupVersionKind().GroupVersion()
	ctx := apirequest.WithRequestInfo(context.Background(), &apirequest.RequestInfo{APIGroup: gv.Group, APIVersion: gv.Version})
	k.Create.PrepareForCreate(ctx, hub)
	var all []error
	for _, e := range apirest.ValidateCreate(ctx, hub, k.Create) {
		all = append(all, e)
	}
	return errors.Join(all...)
}
