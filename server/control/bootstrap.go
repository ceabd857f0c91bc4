// Package control holds what keeps a cluster's own objects in order: the ones that every
// cluster begins with, and the controllers that run inside.
//
// Everything here is a client of the API: it uses the server through a rest.Config as
// any other program would, so that admission, rules and conflicts apply. Only what
// controllers watch is read from the store, where it is at hand.
package control

import (
	"context"
	stderrors "errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	typedevents "k8s.io/client-go/kubernetes/typed/events/v1"
	typednetworking "k8s.io/client-go/kubernetes/typed/networking/v1"
	typedscheduling "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	"k8s.io/client-go/rest"
	priorities "k8s.io/kubernetes/pkg/apis/scheduling/v1"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

// Address is where clients inside a cluster find the API.
type Address struct {
	// IP of this server as others reach it; nil, or a loopback address, which says nothing
	// to others: the kubernetes Service gets no endpoint.
	IP net.IP
	// Port that this server listens on.
	Port int
	// Shared says that other servers may be endpoints of the same Service.
	Shared bool
	// Ranges are where the addresses of Services are from, that of the default family
	// first: the kubernetes Service has the first address of the first. nil: the default.
	Ranges []*net.IPNet
}

// Bootstrap makes the objects that every cluster begins with and that are not there yet:
// the system namespaces, the system priority classes, the default ServiceCIDR, the kubernetes
// Service with its endpoint, and the day since when the use of secrets' tokens is noted.
// Several servers may do so at once. Objects that are there are left as they are, but for the
// endpoint, which moves with the server.
func Bootstrap(ctx context.Context, config *rest.Config, at Address) error {
	c, err := newClients(config)
	if err != nil {
		return err
	}
	if at.Ranges == nil {
		defaults, err := allocate.ParseRanges(nil, "")
		if err != nil {
			return err
		}
		at.Ranges = defaults.Addresses
	}
	// All at once, so that the creates share one or two commits.
	group, ctx := errgroup.WithContext(ctx)
	for _, pc := range priorities.SystemPriorityClasses() {
		group.Go(func() error { return ifServed(c.ensurePriorityClass(ctx, pc)) })
	}
	for _, name := range []string{metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		group.Go(func() error { return ifServed(c.ensureNamespace(ctx, name)) })
	}
	group.Go(func() error {
		if err := c.ensureNamespace(ctx, metav1.NamespaceSystem); err != nil {
			return ifServed(err)
		}
		return ifServed(c.ensureTokenTracking(ctx))
	})
	group.Go(func() error {
		first, both := errgroup.WithContext(ctx)
		first.Go(func() error { return c.ensureNamespace(both, metav1.NamespaceDefault) })
		first.Go(func() error { return ifServed(c.ensureServiceCIDR(both, at.Ranges)) })
		if err := first.Wait(); err != nil {
			return ifServed(err) // without namespaces there is nothing in one
		}
		inside, ctx := errgroup.WithContext(ctx)
		inside.Go(func() error { return ifServed(c.ensureServiceCIDRReady(ctx, at.Ranges)) })
		inside.Go(func() error { return ifServed(c.ensureService(ctx, at)) })
		inside.Go(func() error { return ifServed(c.ensureEndpoint(ctx, at)) })
		return inside.Wait()
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

// MaintainEvery is how often kube-apiserver looks after its Service; its namespaces it
// sees to once a minute.
const MaintainEvery = 10 * time.Second

// Maintain does again what Bootstrap did, every so often until ctx ends, so that what was
// deleted of it comes back. What stands in its way is logged when it begins.
func Maintain(ctx context.Context, config *rest.Config, at Address, every time.Duration, logf func(format string, args ...any)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := Bootstrap(ctx, config, at)
		if err != nil && !failed && ctx.Err() == nil {
			logf("%v", err)
		}
		failed = err != nil
	}
}

// clients are the few typed clients that bootstrap needs; a whole clientset takes longer
// to make than all of bootstrap's requests.
type clients struct {
	core         typedcore.CoreV1Interface
	coordination typedcoordination.CoordinationV1Interface
	discovery    typeddiscovery.DiscoveryV1Interface
	events       typedevents.EventsV1Interface
	networking   typednetworking.NetworkingV1Interface
	scheduling   typedscheduling.SchedulingV1Interface
}

func newClients(config *rest.Config) (*clients, error) {
	config = quiet(config)
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("bootstrap client: %w", err)
	}
	c := &clients{}
	if c.core, err = typedcore.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("bootstrap client: %w", err)
	}
	if c.coordination, err = typedcoordination.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("bootstrap client: %w", err)
	}
	if c.discovery, err = typeddiscovery.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("bootstrap client: %w", err)
	}
	if c.events, err = typedevents.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("bootstrap client: %w", err)
	}
	if c.networking, err = typednetworking.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("bootstrap client: %w", err)
	}
	if c.scheduling, err = typedscheduling.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("bootstrap client: %w", err)
	}
	return c, nil
}

// quiet keeps warnings, such as that of a deprecated version, out of the log: they are
// for people who write requests.
func quiet(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	return config
}

func (c *clients) ensureNamespace(ctx context.Context, name string) error {
	_, err := c.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err = c.core.Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	}
	return orExists("namespace "+name, err)
}

func (c *clients) ensurePriorityClass(ctx context.Context, pc *schedulingv1.PriorityClass) error {
	_, err := c.scheduling.PriorityClasses().Get(ctx, pc.Name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		_, err = c.scheduling.PriorityClasses().Create(ctx, pc.DeepCopy(), metav1.CreateOptions{})
	}
	return orExists("priority class "+pc.Name, err)
}

// orExists lets another server have been faster.
func orExists(what string, err error) error {
	if err == nil || errors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ifServed passes over resources that are switched off: it is their paths that are not
// found, not an object with a name.
func ifServed(err error) error {
	var status errors.APIStatus
	if !errors.IsNotFound(err) || !stderrors.As(err, &status) {
		return err
	}
	details := status.Status().Details
	if details == nil || details.Name == "" || errors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return nil
	}
	return err
}
