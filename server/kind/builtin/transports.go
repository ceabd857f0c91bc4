package builtin

import (
	"context"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/cluster/ports"
	"k8s.io/kubernetes/pkg/kubelet/client"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
)

// Transports are those for connections to pods, nodes and Services. The zero value uses no
// certificates.
type Transports struct {
	// Proxy is for pods, endpoints of Services, and ports of nodes other than the kubelet's.
	Proxy http.RoundTripper
	// Kubelet is for kubelets. InsecureKubelet is for requests that ask not to verify the
	// kubelet's certificate.
	Kubelet, InsecureKubelet http.RoundTripper
	// Addresses are the types of node addresses to use, in order of preference.
	Addresses []corev1.NodeAddressType
}

// kubelets is a client.ConnectionInfoGetter: it finds the kubelet of a node by the node's
// status. Upstream's implementation reads certificates from files only.
type kubelets struct {
	Transports
	nodes *genericregistry.Store
}

var _ client.ConnectionInfoGetter = &kubelets{}

func (k *kubelets) GetConnectionInfo(ctx context.Context, name types.NodeName) (*client.ConnectionInfo, error) {
	obj, err := k.nodes.Get(ctx, string(name), &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{}
	if err := legacyscheme.Scheme.Convert(obj, node, nil); err != nil {
		return nil, err
	}
	host, err := nodeutil.GetPreferredNodeAddress(node, k.Addresses)
	if err != nil {
		return nil, err
	}
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port <= 0 {
		port = ports.KubeletPort
	}
	return &client.ConnectionInfo{
		Scheme: "https", Hostname: host, Port: strconv.Itoa(port),
		Transport: k.Kubelet, InsecureSkipTLSVerifyTransport: k.InsecureKubelet,
	}, nil
}
