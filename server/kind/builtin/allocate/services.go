package allocate

import (
	"context"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/storageadapter"
	"github.com/plinth-io/plinth/sqlstore"
)

// Services has the hooks of the resource services; see kind.Hooks. They differ from upstream's
// in two ways: what a refused Service has taken is given back at once, and only what belongs
// to the Service is given back.
type Services struct {
	store  *sqlstore.Store
	ranges Ranges
	ports  *Ports
	getter *storageadapter.Getter

	once      sync.Once // guards the fields below, which are made for the first Service
	ip        *kind.Kind
	addresses *registry.Store
	err       error

	unused sync.Pool // of *attempt
}

// NewServices returns the hooks for Services in store. getter reads the same store.
func NewServices(store *sqlstore.Store, ranges Ranges, getter *storageadapter.Getter) *Services {
	return &Services{store: store, ranges: ranges, ports: NewPorts(store, ranges.NodePorts), getter: getter}
}

// attempt is one write of one Service. Upstream's storage of Services does not tell an allocator
// for which Service it allocates, so each write has a storage and allocators of its own.
type attempt struct {
	*Services
	rest *servicestore.REST

	ctx     context.Context
	service *api.Service
	taken   map[string]types.UID // IPAddresses by name; empty for one that was given back
	failed  error                // the store's error, which upstream's code takes for an address in use
}

// begin begins an attempt.
func (s *Services) begin(ctx context.Context, service *api.Service) (*attempt, error) {
	if s.once.Do(s.prepare); s.err != nil {
		return nil, s.err
	}
	a, ok := s.unused.Get().(*attempt)
	if !ok {
		a = &attempt{Services: s}
		if err := a.makeREST(); err != nil {
			return nil, err
		}
	}
	a.ctx, a.service, a.taken, a.failed = ctx, service, map[string]types.UID{}, nil
	return a, nil
}

func (s *Services) prepare() {
	s.ip = s.getter.Kind(networking.Resource("ipaddresses"))
	s.addresses, s.err = newRegistry(s.getter, s.ip)
}

func (a *attempt) makeREST() (err error) {
	families := map[api.IPFamily]ipallocator.Interface{}
	for _, cidr := range a.ranges.Addresses {
		family := familyOf(netutils.IsIPv6CIDR(cidr))
		families[family] = &addresses{attempt: a, family: family}
	}
	first := familyOf(netutils.IsIPv6CIDR(a.ranges.Addresses[0]))
	a.rest, _, _, err = servicestore.NewREST(a.getter, first, families, &ports{attempt: a}, nil, nil, nil)
	return err
}

func (a *attempt) end() {
	a.ctx, a.service = nil, nil
	a.unused.Put(a)
}

// result is the result of a hook, from the result of upstream's.
func (a *attempt) result(finish registry.FinishFunc, err error) (registry.FinishFunc, error) {
	if err == nil {
		err = a.failed
		if err != nil {
			finish(a.ctx, false)
		}
	} else {
		a.giveBack()
		if a.failed != nil {
			err = a.failed
		}
	}
	if err != nil {
		a.end()
		return nil, err
	}
	return func(ctx context.Context, success bool) {
		finish(ctx, success)
		a.end()
	}, nil
}

// giveBack releases the addresses of an attempt that failed half-way, as far as upstream's code
// has not. Upstream's code has released the ports.
func (a *attempt) giveBack() {
	for name := range a.taken {
		_ = a.release(name) // the repair finds what is left
	}
}

// ReserveNew is kind.Hooks.ReserveNew.
func (s *Services) ReserveNew(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (registry.FinishFunc, error) {
	a, err := s.begin(ctx, obj.(*api.Service))
	if err != nil {
		return nil, err
	}
	return a.result(a.rest.BeginCreate(ctx, obj, options))
}

// ReserveChanged is kind.Hooks.ReserveChanged.
func (s *Services) ReserveChanged(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (registry.FinishFunc, error) {
	a, err := s.begin(ctx, obj.(*api.Service))
	if err != nil {
		return nil, err
	}
	return a.result(a.rest.BeginUpdate(ctx, obj, old, options))
}

// Release is kind.Hooks.Release.
func (s *Services) Release(obj runtime.Object, options *metav1.DeleteOptions) {
	if dryrun.IsDryRun(options.DryRun) {
		return
	}
	service := obj.(*api.Service)
	a, err := s.begin(apirequest.WithNamespace(context.Background(), service.Namespace), service)
	if err != nil {
		return
	}
	a.rest.AfterDelete(obj, options)
	a.end()
}

// releaseTime bounds a release, which goes on when the client is gone.
const releaseTime = 10 * time.Second

func (a *attempt) releasing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(a.ctx), releaseTime)
}

// owner is the reference to the Service in what it has taken.
func (a *attempt) owner() networkingv1.ParentReference {
	return Owner(a.service.Namespace, a.service.Name)
}

// Owner is the reference to a Service in the addresses and ports that it has taken.
func Owner(namespace, name string) networkingv1.ParentReference {
	return networkingv1.ParentReference{Resource: "services", Namespace: namespace, Name: name}
}

// IsOwner tells whether ref, which may be nil, names a Service.
func IsOwner(ref *networkingv1.ParentReference) bool {
	return ref != nil && ref.Group == "" && ref.Resource == "services"
}

// newRegistry returns upstream's registry of k's objects.
func newRegistry(getter generic.RESTOptionsGetter, k *kind.Kind) (*registry.Store, error) {
	singular := k.GroupResource()
	singular.Resource = k.Singular
	r := &registry.Store{
		NewFunc:                   func() runtime.Object { return k.Codec.New() },
		NewListFunc:               func() runtime.Object { return k.Codec.NewList() },
		DefaultQualifiedResource:  k.GroupResource(),
		SingularQualifiedResource: singular,
		CreateStrategy:            k.Create,
		UpdateStrategy:            k.Update,
		DeleteStrategy:            k.Delete,
		TableConvertor:            apirest.NewDefaultTableConvertor(k.GroupResource()),
	}
	return r, r.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter})
}
