package controllers

import (
	"context"

	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// runServiceAccounts runs upstream's controller that keeps a service account named
// default in every namespace.
func (m *Manager) runServiceAccounts(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		v1 := core.New(s, "", nil).V1()
		c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), v1.ServiceAccounts(), v1.Namespaces(), client,
			serviceaccount.DefaultServiceAccountsControllerOptions())
		if err != nil {
			return err
		}
		s.Start(nil)
		c.Run(ctx, 1)
		return nil
	})
}
