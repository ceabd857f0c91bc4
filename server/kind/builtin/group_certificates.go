package builtin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"

	"github.com/plinth-io/plinth/server/kind"
)

func certificatesKinds() []*kind.Kind {
	kinds := []*kind.Kind{{
		Resource: "certificatesigningrequests", Singular: "certificatesigningrequest", Kind: "CertificateSigningRequest",
		ShortNames: []string{"csr"},
		Create:     certificates.Strategy, Update: certificates.Strategy, Delete: certificates.Strategy,
		Attrs:        certificates.GetAttrs,
		Attributes:   attributes{"spec.signerName": defaulted("spec.signerName")},
		Subresources: subresources(status(certificates.StatusStrategy), untabled(part("approval", certificates.ApprovalStrategy))),
	}}
	if utilfeature.DefaultFeatureGate.Enabled(features.ClusterTrustBundle) {
		kinds = append(kinds, &kind.Kind{
			Resource: "clustertrustbundles", Singular: "clustertrustbundle", Kind: "ClusterTrustBundle",
			Create: clustertrustbundle.Strategy, Update: clustertrustbundle.Strategy, Delete: clustertrustbundle.Strategy,
			Attrs:      bundleAttrs,
			Attributes: attributes{"spec.signerName": absentIs("", "spec.signerName")},
		})
	}
	return group{scheme: legacyscheme.Scheme, name: "certificates.k8s.io", versions: []string{"v1", "v1beta1", "v1alpha1"}}.kinds(kinds...)
}

// bundleAttrs makes bundles selectable by their signer.
func bundleAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	bundle, ok := obj.(*api.ClusterTrustBundle)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no ClusterTrustBundle", obj)
	}
	names := generic.ObjectMetaFieldsSet(&bundle.ObjectMeta, false)
	return bundle.Labels, generic.MergeFieldsSets(names, fields.Set{"spec.signerName": bundle.Spec.SignerName}), nil
}
