package controllers

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"

	"github.com/plinth-io/plinth/sqlstore"
)

// runRootCA runs upstream's controller that keeps the ConfigMap kube-root-ca.crt in every
// namespace, from which pods learn whom to believe.
func (m *Manager) runRootCA(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		s.only(&corev1.ConfigMap{}, func(ev *sqlstore.Event) bool {
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
