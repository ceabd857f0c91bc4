package builtin

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	noderest "k8s.io/kubernetes/pkg/registry/core/node/rest"
	podstorage "k8s.io/kubernetes/pkg/registry/core/pod/storage"

	"github.com/plinth-io/plinth/server/kind"
)

// pods attaches binding and eviction, the collection of bindings that came before the
// subresource, and the connections to what runs in pods and on nodes.
func (a *attaching) pods() error {
	budgets, err := policyclient.NewForConfig(a.Client)
	if err != nil {
		return err
	}
	nodes, err := a.nodes()
	if err != nil {
		return err
	}
	kubelets := &kubelets{nodes: nodes, kind: a.kinds["nodes"], Reach: a.Reach}
	s, err := podstorage.NewStorage(a.getter, kubelets, a.Reach.Proxy, budgets)
	if err != nil {
		return err
	}
	pods := a.kinds["pods"]
	addPost(pods, "binding", corev1.SchemeGroupVersion.WithKind("Binding"), s.Binding)
	addPost(pods, "eviction", policyv1.SchemeGroupVersion.WithKind("Eviction"), s.Eviction)
	addConnect(pods, "attach", "PodAttachOptions", s.Attach)
	addConnect(pods, "exec", "PodExecOptions", s.Exec)
	addConnect(pods, "portforward", "PodPortForwardOptions", s.PortForward)
	addConnect(pods, "proxy", "PodProxyOptions", &byNumber{s.Proxy, "pod", s.Pod.Get})
	add(pods, &kind.Subresource{
		Name: "log", Verbs: []string{"get"}, NoTable: true,
		Stream: s.Log, Parameters: legacyscheme.ParameterCodec,
	})
	toNodes := &noderest.ProxyREST{Store: nodes, Connection: kubelets, ProxyTransport: a.Reach.Proxy}
	addConnect(a.kinds["nodes"], "proxy", "NodeProxyOptions", &byNumber{toNodes, "node", nodes.Get})
	a.more = append(a.more, group{scheme: legacyscheme.Scheme, name: "", versions: []string{"v1"}}.kinds(&kind.Kind{
		Resource: "bindings", Singular: "binding", Kind: "Binding",
		Namespaced: true,
		Verbs:      []string{"create"},
		Virtual:    s.LegacyBinding,
	})...)
	return a.serviceProxy(s.Pod)
}
