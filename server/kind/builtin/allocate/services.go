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
	"k8s.io/apiserver/pkg/util/dryrun"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Services has the hooks of the resource services; see kind.Kind. They work in the way of
// upstream's, with two differences for the better: what a refused Service had taken already
// is given back at once, and only what is the Service's own is given back.
type Services struct {
	store  *sqlstore.Store
	ranges Ranges
	ports  *Ports
	getter generic.RESTOptionsGetter
	ip     *kind.Kind // ipaddresses
	ep     *kind.Kind // endpoints

	once      sync.Once // guards what follows, which is made for the first Service
	addresses *registry.Store
	endpoints *registry.Store
	err       error

	unused sync.Pool // of *attempt
}

// NewServices returns the hooks for Services in store. ip and ep are ipaddresses and
// endpoints.
func NewServices(store *sqlstore.Store, ranges Ranges, getter generic.RESTOptionsGetter, ip, ep *kind.Kind) *Services {
	return &Services{store: store, ranges: ranges, ports: NewPorts(store, ranges.NodePorts), getter: getter, ip: ip, ep: ep}
}

// attempt is one write of one Service. Upstream's storage of Services does not tell an
// allocator for whom it allocates, so each write has a storage and allocators that nobody
// else has at the time.
type attempt struct {
	*Services
	rest *servicestore.REST

	ctx     context.Context
	service *api.Service
	taken   map[string]types.UID // IPAddresses by name; empty for one that was given back
	failed  error                // what the store said, which upstream's code takes for an address in use
}

// begin gives an attempt to the write of one Service.
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
	if s.addresses, s.err = newRegistry(s.getter, s.ip); s.err == nil {
		s.endpoints, s.err = newRegistry(s.getter, s.ep)
	}
}

func (a *attempt) makeREST() (err error) {
	families := map[api.IPFamily]ipallocator.Interface{}
	for _, cidr := range a.ranges.Addresses {
		family := familyOf(netutils.IsIPv6CIDR(cidr))
		families[family] = &addresses{attempt: a, family: family}
	}
	first := familyOf(netutils.IsIPv6CIDR(a.ranges.Addresses[0]))
	a.rest, _, _, err = servicestore.NewREST(a.getter, first, families, &ports{attempt: a}, a.endpoints, nil, nil)
	return err
}

func (a *attempt) end() {
	a.ctx, a.service = nil, nil
	a.unused.Put(a)
}

// result is what becomes of an attempt that upstream's code has begun.
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

// giveBack releases the addresses of an attempt that came to nothing half-way, as far as
// upstream's code has not; the ports it has.
func (a *attempt) giveBack() {
	for name := range a.taken {
		_ = a.release(name) // what is left is found by the repair
	}
}

// BeginCreate is kind.Kind.BeginCreate.
func (s *Services) BeginCreate(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (registry.FinishFunc, error) {
	a, err := s.begin(ctx, obj.(*api.Service))
	if err != nil {
		return nil, err
	}
	return a.result(a.rest.BeginCreate(ctx, obj, options))
}

// BeginUpdate is kind.Kind.BeginUpdate.
func (s *Services) BeginUpdate(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (registry.FinishFunc, error) {
	a, err := s.begin(ctx, obj.(*api.Service))
	if err != nil {
		return nil, err
	}
	return a.result(a.rest.BeginUpdate(ctx, obj, old, options))
}

// AfterDelete is kind.Kind.AfterDelete. As upstream's it deletes the Endpoints, too.
func (s *Services) AfterDelete(obj runtime.Object, options *metav1.DeleteOptions) {
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

// releaseTime bounds giving back, which goes on when the client is gone.
const releaseTime = 10 * time.Second

func (a *attempt) releasing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(a.ctx), releaseTime)
}

// owner is how what is taken refers to the Service.
func (a *attempt) owner() networkingv1.ParentReference {
	return networkingv1.ParentReference{Resource: "services", Namespace: a.service.Namespace, Name: a.service.Name}
}
