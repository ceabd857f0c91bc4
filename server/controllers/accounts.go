package controllers

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"

	"github.com/plinth-io/plinth/sqlstore"
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

// accountTokenWorkers is small, because people create these secrets by hand.
const accountTokenWorkers = 1

// runAccountTokens runs upstream's controller that fills the token secrets of service accounts with tokens
// that do not expire, and deletes these secrets with their accounts.
func (m *Manager) runAccountTokens(ctx context.Context) error {
	if m.config.Credentials.Tokens == nil {
		<-ctx.Done()
		return nil
	}
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		v1 := core.New(s, "", nil).V1()
		c, err := serviceaccount.NewTokensController(klog.FromContext(ctx), v1.ServiceAccounts(), v1.Secrets(), client,
			serviceaccount.TokensControllerOptions{TokenGenerator: m.config.Credentials.Tokens, RootCA: m.config.Credentials.RootCA})
		if err != nil {
			return err
		}
		s.Start(nil)
		c.Run(ctx, accountTokenWorkers)
		return nil
	})
}

// runRootCA runs upstream's controller that maintains the ConfigMap kube-root-ca.crt in every namespace. Pods
// read from it which authority to trust.
func (m *Manager) runRootCA(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		s.filter(&corev1.ConfigMap{}, func(ev *sqlstore.Event) bool {
			return strings.HasSuffix(ev.Entry.Key, "/"+rootcacertpublisher.RootCACertConfigMapName)
		})
		v1 := core.New(s, "", nil).V1()
		c, err := rootcacertpublisher.NewPublisher(v1.ConfigMaps(), v1.Namespaces(), client, m.config.Credentials.RootCA)
		if err != nil {
			return err
		}
		s.Start(nil)
		c.Run(ctx, 1)
		return nil
	})
}
