package builtin

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podstorage "k8s.io/kubernetes/pkg/registry/core/pod/storage"

	"github.com/plinth-io/plinth/server/kind"
)

// pods attaches binding and eviction, and the collection of bindings that came before the
// subresource.
func (a *attaching) pods() error {
	budgets, err := policyclient.NewForConfig(a.Client)
	if err != nil {
		return err
	}
	s, err := podstorage.NewStorage(a.getter, nil, nil, budgets)
	if err != nil {
		return err
	}
	pods := a.kinds["pods"]
	addPost(pods, "binding", corev1.SchemeGroupVersion.WithKind("Binding"), s.Binding)
	addPost(pods, "eviction", policyv1.SchemeGroupVersion.WithKind("Eviction"), s.Eviction)
	a.more = append(a.more, group{scheme: legacyscheme.Scheme, name: "", versions: []string{"v1"}}.kinds(&kind.Kind{
		Resource: "bindings", Singular: "binding", Kind: "Binding",
		Namespaced: true,
		Verbs:      []string{"create"},
		Virtual:    s.LegacyBinding,
	})...)
	return nil
}
