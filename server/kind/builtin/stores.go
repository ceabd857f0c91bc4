package builtin

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/kubelet/client"
	noderest "k8s.io/kubernetes/pkg/registry/core/node/rest"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	accountstore "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/storageadapter"
)

// stores are upstream's registries of resources that upstream does more with than storing
// one object: binding and evicting pods, connections to pods, nodes and Services, tokens of
// service accounts, addresses and ports of Services.
//
// They are built before the Kinds, so that the tables take subresources and hooks from them.
// Without Options.Store they are empty, and what the tables take from them is nil.
type stores struct {
	Options
	getter *storageadapter.Getter

	pods         podstore.PodStorage
	podProxy     apirest.Connecter
	nodeProxy    apirest.Connecter
	serviceProxy apirest.Connecter
	accounts     *accountstore.REST // nil if there are no Options.Tokens
	services     *allocate.Services
}

// newStores builds the stores. kindOf is called when a store is used for the first time.
func newStores(o Options, kindOf func(schema.GroupResource) *kind.Kind) *stores {
	s := &stores{Options: o}
	if o.Store == nil {
		return s
	}
	s.getter = storageadapter.New(o.Store, kindOf)
	if err := s.build(); err != nil {
		panic(fmt.Sprintf("build upstream's registries: %v", err)) // every test would fail
	}
	return s
}

func (s *stores) build() error {
	nodes, err := nodestore.NewStorage(s.getter, client.KubeletClientConfig{}, s.Transports.Proxy)
	if err != nil {
		return err
	}
	budgets, err := policyclient.NewForConfig(s.Client)
	if err != nil {
		return err
	}
	kubelets := &kubelets{nodes: nodes.Node.Store, Transports: s.Transports}
	if s.pods, err = podstore.NewStorage(s.getter, kubelets, s.Transports.Proxy, budgets, s.Authorizer); err != nil {
		return err
	}
	toNodes := &noderest.ProxyREST{Store: nodes.Node.Store, Connection: kubelets, ProxyTransport: s.Transports.Proxy}
	s.podProxy = &numericPort{s.pods.Proxy, "pod", s.pods.Pod.Get}
	s.nodeProxy = &numericPort{toNodes, "node", nodes.Node.Get}
	if err := s.buildAccounts(nodes.Node); err != nil {
		return err
	}
	return s.buildServices()
}

func (s *stores) buildAccounts(nodes apirest.Getter) error {
	t := s.Tokens
	if t == nil {
		return nil
	}
	secrets, err := secretstore.NewREST(s.getter)
	if err != nil {
		return err
	}
	webhooks, err := admissionclient.NewForConfig(s.Client)
	if err != nil {
		return err
	}
	s.accounts, err = accountstore.NewREST(s.getter, t.Issuer(), t.Audiences(), s.Authorizer, t.MaxExpiration(), s.pods.Pod, secrets, nodes,
		webhooks.ValidatingWebhookConfigurations(), webhooks.MutatingWebhookConfigurations(),
		t.ExtendExpiration(), serviceaccount.ExpirationExtensionSeconds*time.Second)
	return err
}

func (s *stores) buildServices() error {
	slices, err := proxy.NewEndpointSliceListerGetter(discoverylisters.NewEndpointSliceLister(
		lister.New[discoveryv1.EndpointSlice](s.Store, lister.SlicePrefix)))
	if err != nil {
		return err
	}
	// This registry of Services is there for its proxy and has no allocators.
	_, _, toServices, err := servicestore.NewREST(s.getter, api.IPv4Protocol, nil, nil, slices, s.pods.Pod, s.Transports.Proxy)
	if err != nil {
		return err
	}
	ranges, err := s.serviceRanges()
	if err != nil {
		return err
	}
	s.serviceProxy = toServices
	s.services = allocate.NewServices(s.Store, ranges, s.getter)
	return nil
}

func (o Options) serviceRanges() (allocate.Ranges, error) {
	if o.Services == nil {
		return allocate.ParseRanges(nil, "")
	}
	return *o.Services, nil
}

// serviceHooks reserve addresses and ports.
func (s *stores) serviceHooks() kind.Hooks {
	if s.services == nil {
		return kind.Hooks{}
	}
	return kind.Hooks{ReserveNew: s.services.ReserveNew, ReserveChanged: s.services.ReserveChanged, Release: s.services.Release}
}

// token is the subresource that signs tokens of a service account.
func (s *stores) token(body schema.GroupVersionKind) *kind.Subresource {
	if s.accounts == nil {
		return nil
	}
	return s.post("token", body, s.accounts.Token)
}

// withStore returns k, or nil without a store.
func (s *stores) withStore(k *kind.Kind) *kind.Kind {
	if s.Store == nil {
		return nil
	}
	return k
}

// post is a subresource whose bodies are created and not stored.
func (s *stores) post(name string, body schema.GroupVersionKind, post apirest.NamedCreater) *kind.Subresource {
	if s.Store == nil {
		return nil
	}
	return &kind.Subresource{
		Name: name, Verbs: []string{"create"}, GVK: body, NoTable: true, Post: post,
		Codec: newCodec(legacyscheme.Scheme, body.Group, body.Kind, body),
	}
}

// verbOf are discovery's verbs for methods; it has none for HEAD and OPTIONS.
var verbOf = map[string]string{"DELETE": "delete", "GET": "get", "PATCH": "patch", "POST": "create", "PUT": "update"}

// connect is a subresource that connects the client to a pod, a node or a Service. options
// is the kind of its parameters, in the core group.
func (s *stores) connect(name, options string, to apirest.Connecter) *kind.Subresource {
	if s.Store == nil {
		return nil
	}
	var verbs []string
	for _, method := range to.ConnectMethods() {
		if verb, ok := verbOf[method]; ok {
			verbs = append(verbs, verb)
		}
	}
	slices.Sort(verbs)
	gvk := corev1.SchemeGroupVersion.WithKind(options)
	return &kind.Subresource{
		Name: name, Verbs: verbs, GVK: gvk, NoTable: true,
		Connect: to, Parameters: legacyscheme.ParameterCodec,
		Codec: newCodec(legacyscheme.Scheme, gvk.Group, gvk.Kind, gvk),
	}
}

// stream is a subresource that is read as a stream of bytes.
func (s *stores) stream(name string, from apirest.GetterWithOptions) *kind.Subresource {
	if s.Store == nil {
		return nil
	}
	return &kind.Subresource{Name: name, Verbs: []string{"get"}, NoTable: true, Stream: from, Parameters: legacyscheme.ParameterCodec}
}
