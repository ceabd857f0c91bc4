//go:build cluster

package upstream

import (
	"github.com/plinth-io/plinth/server/components"
	"github.com/plinth-io/plinth/server/controllers"
)

// limits are flags of both programs that bound the rate of their requests. Inside there is no bound unless one is given.
var limits = []string{"kube-api-qps", "kube-api-burst"}

// New returns kube-controller-manager and kube-scheduler. An error names the field of c that is wrong.
func New(c components.Config) ([]controllers.Component, error) {
	m, s := manager{c}, kubeScheduler{c}
	if _, _, err := m.configure(); err != nil {
		return nil, err
	}
	if _, _, err := s.configure(); err != nil {
		return nil, err
	}
	return []controllers.Component{{Name: managerName, Run: m.run}, {Name: schedulerName, Run: s.run}}, nil
}
