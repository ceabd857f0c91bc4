package control

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// runServiceAccounts runs upstream's controller that keeps a service account named
// default in every namespace.
func (m *Manager) runServiceAccounts(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	c, err := serviceaccount.NewServiceAccountsController(
		factory.Core().V1().ServiceAccounts(),
		factory.Core().V1().Namespaces(),
		client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	c.Run(ctx, 1)
	return nil
}

// withoutManagedFields halves what an informer keeps.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}
