package controllers

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/kubernetes"
)

// Accounts returns the users of all controllers that have service accounts, by the names of the
// controllers.
func Accounts() map[string]user.Info {
	all := map[string]user.Info{}
	for _, c := range controllers {
		if c.account != "" {
			all[c.name] = c.user()
		}
	}
	return all
}

// Enabled returns the controllers that a value of --controllers turns on.
var Enabled = Names

// CollectPods makes one pass of the pod garbage collector. The pass does not wait for missing
// nodes to come back, and keeps threshold of the pods that have ended.
func (m *Manager) CollectPods(ctx context.Context, threshold int) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		v1 := core.New(s, "", nil).V1()
		g := &podGC{client: client, pods: v1.Pods().Lister(), nodes: v1.Nodes().Lister(), logger: m.config.Logger, threshold: threshold}
		return g.collect(ctx)
	})
}
