package aggregator

import (
	"cmp"
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/webhook"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/plinth-io/plinth/server/dialout"
)

// Services are the group versions that extension servers serve.
type Services struct {
	resolver    webhook.ServiceResolver
	certificate func() (*tls.Certificate, error)
	dialer      *dialout.Dialer
	pollAgain   time.Duration

	draining context.Context // ended by Close: requests that would go on for ever end then
	drain    context.CancelFunc

	all   atomic.Pointer[map[schema.GroupVersion]*Service] // replaced, never changed
	found atomic.Pointer[Discovered]

	mu      sync.Mutex             // of those who replace all or found; guards the rest
	changed chan struct{}          // closed at the next change
	servers map[server]*discovered // by Poll
}

// Service is one group version and how it is reached. It is immutable.
type Service struct {
	// Object is shared: nobody may change it.
	Object *apiregistration.APIService

	services *Services
	target   *target
}

// New returns an empty Services. It finds addresses through resolver, connects to them by dialer (nil:
// to any), and calls certificate for the certificate that it shows to extension servers, which is renewed
// now and then.
func New(resolver webhook.ServiceResolver, certificate func() (*tls.Certificate, error), dialer *dialout.Dialer) *Services {
	if dialer == nil {
		dialer = dialout.New(dialout.Config{})
	}
	s := &Services{resolver: resolver, certificate: certificate, dialer: dialer, pollAgain: pollAgain, changed: make(chan struct{})}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.all.Store(&map[schema.GroupVersion]*Service{})
	s.found.Store(&Discovered{Documents: map[string]string{}})
	return s
}

// Drain ends watches and upgraded connections, so that their clients go elsewhere.
func (s *Services) Drain() { s.drain() }

// Close gives up the connections to extension servers. Nothing may be under way.
func (s *Services) Close() {
	s.Drain()
	for _, service := range *s.all.Load() {
		service.target.close()
	}
}

func groupVersion(name string) schema.GroupVersion {
	version, group, _ := strings.Cut(name, ".")
	return schema.GroupVersion{Group: group, Version: version}
}

// Put sends requests of object's group version to the Service that object names. An object
// without a Service has the effect of Remove. object must not be changed any more.
func (s *Services) Put(object *apiregistration.APIService) {
	if object.Spec.Service == nil {
		s.Remove(object.Name)
		return
	}
	s.replace(object.Name, func(old *Service) *Service {
		service := &Service{Object: object, services: s}
		if old != nil && old.target.same(object) {
			service.target = old.target
		} else {
			service.target = newTarget(object, s.certificate, s.dialer)
		}
		return service
	})
}

// Remove forgets the APIService of that name.
func (s *Services) Remove(name string) {
	if _, there := (*s.all.Load())[groupVersion(name)]; there {
		s.replace(name, func(*Service) *Service { return nil })
	}
}

func (s *Services) replace(name string, with func(old *Service) *Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(*s.all.Load())
	old := all[groupVersion(name)]
	now := with(old)
	if now == nil {
		delete(all, groupVersion(name))
	} else {
		all[groupVersion(name)] = now
	}
	s.all.Store(&all)
	s.publish()
	close(s.changed)
	s.changed = make(chan struct{})
	if old != nil && (now == nil || now.target != old.target) {
		old.target.close() // of idle connections; others end with their requests
	}
}

// Changed returns a channel that is closed at the next Put or Remove.
func (s *Services) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Find returns the Service for the APIService of that name, nil if there is none.
func (s *Services) Find(name string) *Service { return (*s.all.Load())[groupVersion(name)] }

// List returns all, by their names.
func (s *Services) List() []*Service {
	return slices.SortedFunc(maps.Values(*s.all.Load()), func(a, b *Service) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
}

// Of returns the extension server that answers a request, nil if this server does. An
// APIService of v1 in the core group takes all paths below /api.
func (s *Services) Of(info *apirequest.RequestInfo) *Service {
	all := *s.all.Load()
	if len(all) == 0 {
		return nil
	}
	path, ok := strings.CutPrefix(info.Path, "/apis/")
	if !ok {
		if info.Path == "/api" || strings.HasPrefix(info.Path, "/api/") {
			return all[schema.GroupVersion{Version: "v1"}]
		}
		return nil
	}
	group, rest, _ := strings.Cut(path, "/")
	version, _, _ := strings.Cut(rest, "/")
	return all[schema.GroupVersion{Group: group, Version: version}]
}

// Available tells whether the condition Available is true.
func (x *Service) Available() bool {
	return helper.IsAPIServiceConditionTrue(x.Object, apiregistration.Available)
}
