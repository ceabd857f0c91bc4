package builtin

import (
	"context"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/cluster/ports"
	"k8s.io/kubernetes/pkg/kubelet/client"
	endpointstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	nodeutil "k8s.io/kubernetes/pkg/util/node"

	"github.com/plinth-io/plinth/server/kind"
)

// Reach is how the server gets at what runs on nodes; the zero value without certificates.
type Reach struct {
	// Proxy is for pods, endpoints of Services, and ports of nodes other than the kubelet's.
	Proxy http.RoundTripper
	// Kubelet is for kubelets, and InsecureKubelet for requests that don't care whether it
	// is the right one.
	Kubelet, InsecureKubelet http.RoundTripper
	// Addresses are the types of a node's addresses that are tried, in this order.
	Addresses []corev1.NodeAddressType
}

// kubelets is upstream's client.ConnectionInfoGetter: it finds the kubelet of a node by what
// that says in its status. Upstream's own takes certificates from files only.
type kubelets struct {
	Reach
	nodes *genericregistry.Store
	kind  *kind.Kind
}

var _ client.ConnectionInfoGetter = &kubelets{}

func (k *kubelets) GetConnectionInfo(ctx context.Context, name types.NodeName) (*client.ConnectionInfo, error) {
	obj, err := k.nodes.Get(ctx, string(name), &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	obj, err = k.kind.Codec.Versioned(obj, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	node := obj.(*corev1.Node)
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

// nodes is upstream's registry of nodes.
func (a *attaching) nodes() (*genericregistry.Store, error) {
	s, err := nodestore.NewStorage(a.getter, client.KubeletClientConfig{}, a.Reach.Proxy)
	if err != nil {
		return nil, err
	}
	return s.Node.Store, nil
}

// serviceProxy attaches the connection to a Service. The registry is there to find
// endpoints by; it allocates nothing.
func (a *attaching) serviceProxy(pods servicestore.PodStorage) error {
	endpoints, err := endpointstore.NewREST(a.getter)
	if err != nil {
		return err
	}
	_, _, proxy, err := servicestore.NewREST(a.getter, api.IPv4Protocol, nil, nil, endpoints, pods, a.Reach.Proxy)
	if err != nil {
		return err
	}
	addConnect(a.kinds["services"], "proxy", "ServiceProxyOptions", proxy)
	return nil
}
