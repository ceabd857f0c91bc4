package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"

	"github.com/plinth-io/plinth/server/kind"
)

func networkingKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "networking.k8s.io", versions: []string{"v1", "v1beta1"}}.kinds(
		&kind.Kind{
			Resource: "ingresses", Singular: "ingress", Kind: "Ingress",
			UpstreamPath: "ingress",
			ShortNames:   []string{"ing"},
			Namespaced:   true,
			Create:       ingress.Strategy, Update: ingress.Strategy, Delete: ingress.Strategy,
			Subresources: subresources(status(ingress.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "ingressclasses", Singular: "ingressclass", Kind: "IngressClass",
			Create: ingressclass.Strategy, Update: ingressclass.Strategy, Delete: ingressclass.Strategy,
		},
		&kind.Kind{
			Resource: "ipaddresses", Singular: "ipaddress", Kind: "IPAddress",
			ShortNames: []string{"ip"},
			Create:     ipaddress.Strategy, Update: ipaddress.Strategy, Delete: ipaddress.Strategy,
		},
		&kind.Kind{
			Resource: "networkpolicies", Singular: "networkpolicy", Kind: "NetworkPolicy",
			ShortNames: []string{"netpol"},
			Namespaced: true,
			Create:     networkpolicy.Strategy, Update: networkpolicy.Strategy, Delete: networkpolicy.Strategy,
		},
		&kind.Kind{
			Resource: "servicecidrs", Singular: "servicecidr", Kind: "ServiceCIDR",
			Create: servicecidr.Strategy, Update: servicecidr.Strategy, Delete: servicecidr.Strategy,
			Subresources: subresources(status(servicecidr.StatusStrategy)),
		},
	)
}
