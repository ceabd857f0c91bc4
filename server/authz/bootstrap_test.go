package authz

import (
	"testing"

	"golang.org/x/sync/errgroup"
)

// Servers of one process ask at the same time. The race detector tells when they disturb each other; it has
// done so for upstream's own functions.
func TestBootstrapTogether(t *testing.T) {
	t.Parallel()
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			verbs := 0
			for _, role := range BootstrapClusterRoles() {
				for _, rule := range role.Rules {
					verbs += len(rule.Verbs)
				}
			}
			for _, rule := range nodeRules() {
				verbs += len(rule.Verbs)
			}
			if verbs == 0 {
				t.Error("no verbs")
			}
			return nil
		})
	}
	_ = group.Wait()
}
