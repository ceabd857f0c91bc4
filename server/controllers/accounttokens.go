package controllers

import (
	"context"

	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// accountTokenWorkers are few: such secrets are made by hand.
const accountTokenWorkers = 1

// runAccountTokens runs upstream's controller that fills in the secrets of service
// accounts, with a token that never ends, and deletes them with their accounts.
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
