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
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/utils/clock"

	"github.com/plinth-io/plinth/server/kind"
)

func certificatesKinds(o Options) []*kind.Kind {
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
	if utilfeature.DefaultFeatureGate.Enabled(features.PodCertificateRequest) {
		requests := podcertificaterequest.NewStrategy()
		kinds = append(kinds, &kind.Kind{
			Resource: "podcertificaterequests", Singular: "podcertificaterequest", Kind: "PodCertificateRequest",
			Namespaced: true,
			Create:     requests, Update: requests, Delete: requests,
			Attrs: podRequestAttrs,
			Attributes: attributes{
				"spec.signerName": absentIs("", "spec.signerName"),
				"spec.podName":    absentIs("", "spec.podName"),
				"spec.nodeName":   absentIs("", "spec.nodeName"),
			},
			Subresources: subresources(status(podcertificaterequest.NewStatusStrategy(requests, o.Authorizer, clock.RealClock{}))),
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

// podRequestAttrs makes requests selectable by their signer, pod and node.
func podRequestAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	request, ok := obj.(*api.PodCertificateRequest)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no PodCertificateRequest", obj)
	}
	names := generic.ObjectMetaFieldsSet(&request.ObjectMeta, true)
	return request.Labels, generic.MergeFieldsSets(names, fields.Set{
		"spec.signerName": request.Spec.SignerName,
		"spec.podName":    request.Spec.PodName,
		"spec.nodeName":   string(request.Spec.NodeName),
	}), nil
}
