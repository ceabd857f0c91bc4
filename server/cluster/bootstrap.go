package cluster

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	priorities "k8s.io/kubernetes/pkg/apis/scheduling/v1"

	"github.com/plinth-io/plinth/server/lister"
)

// Bootstrap creates the objects with which every cluster begins, if they do not exist: the system namespaces
// and priority classes, the default ServiceCIDR, the kubernetes Service with its endpoint, and the ConfigMap
// with the date since which the use of token secrets is recorded. Several servers may call it at the same
// time. It changes no existing object except the endpoint, which follows the server's address.
//
// An object that cannot be decrypted counts as existing. Bootstrap logs its name and succeeds, because the
// operator needs a running server to delete it.
func (c *Cluster) Bootstrap(ctx context.Context) error {
	defer c.sealed.logFound(c.config.Logger)
	here := c.config.Here
	// The creates run at the same time, so that they share one or two commits.
	group, ctx := errgroup.WithContext(ctx)
	for _, pc := range priorities.SystemPriorityClasses() {
		group.Go(func() error {
			return c.orUnreadable(ifServed(c.ensurePriorityClass(ctx, pc)), priorityClassPrefix+pc.Name)
		})
	}
	namespace := func(ctx context.Context, name string) error {
		return c.orUnreadable(c.ensureNamespace(ctx, name), lister.NamespacePrefix+name)
	}
	for _, name := range []string{metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		group.Go(func() error { return ifServed(namespace(ctx, name)) })
	}
	group.Go(func() error {
		if err := namespace(ctx, metav1.NamespaceSystem); err != nil {
			return ifServed(err)
		}
		return c.orUnreadable(ifServed(c.ensureTokenTracking(ctx)), tokenTrackingKey)
	})
	group.Go(func() error {
		first, both := errgroup.WithContext(ctx)
		first.Go(func() error { return namespace(both, metav1.NamespaceDefault) })
		first.Go(func() error {
			return c.orUnreadable(ifServed(c.ensureServiceCIDR(both, here.Ranges.Addresses)), cidrKey)
		})
		if err := first.Wait(); err != nil {
			return ifServed(err) // without the namespace the objects below cannot exist
		}
		inside, ctx := errgroup.WithContext(ctx)
		inside.Go(func() error {
			return c.orUnreadable(ifServed(c.ensureServiceCIDRReady(ctx, here.Ranges.Addresses)), cidrKey)
		})
		inside.Go(func() error { return c.orUnreadable(ifServed(c.ensureService(ctx, here)), serviceKey) })
		inside.Go(func() error { return c.orUnreadable(ifServed(c.beginEndpoint(ctx)), endpointsKey, sliceKey) })
		return inside.Wait()
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	c.begun = true
	return nil
}

func (c *clients) ensureNamespace(ctx context.Context, name string) error {
	_, err := c.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err = c.core.Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	}
	return orExists("namespace "+name, err)
}

func (c *clients) ensurePriorityClass(ctx context.Context, pc *schedulingv1.PriorityClass) error {
	_, err := c.scheduling.PriorityClasses().Get(ctx, pc.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = c.scheduling.PriorityClasses().Create(ctx, pc.DeepCopy(), metav1.CreateOptions{})
	}
	return orExists("priority class "+pc.Name, err)
}

// orExists returns nil if the object exists already, because another server may have created it.
func orExists(what string, err error) error {
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ifServed ignores the error for a resource that is switched off: the path was not found, so the
// error names no object.
func ifServed(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	details := status.Status().Details
	if details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return nil
	}
	return err
}
