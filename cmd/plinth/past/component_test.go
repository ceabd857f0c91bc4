package past

import "testing"

func TestIsComponent(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]bool{
		"system:apiserver":   true,
		"system:node:worker": true,
		"system:serviceaccount:kube-system:generic-garbage-collector": true,
		"system:serviceaccount:kube-system:namespace-controller":      true,
		"system:serviceaccount:kube-system:deployment-controller":     true,
		"system:serviceaccount:kube-system:token-cleaner":             true,
		"system:serviceaccount:kube-system:kustomize-controller":      false,
		"system:serviceaccount:shop:deployment-controller":            false,
		"ann": false,
	} {
		if got := isComponent(user); got != want {
			t.Errorf("%s: %v", user, got)
		}
	}
}
