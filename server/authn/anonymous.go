package authn

import (
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
)

var anonymous = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}

// anonymity says which requests may come from nobody in particular.
type anonymity struct {
	allowed bool
	paths   map[string]bool // the only ones; none: all
}

func newAnonymity(c apiserver.AnonymousAuthConfig) anonymity {
	a := anonymity{allowed: c.Enabled}
	for _, condition := range c.Conditions {
		if a.paths == nil {
			a.paths = map[string]bool{}
		}
		a.paths[condition.Path] = true
	}
	return a
}

func (a *anonymity) allows(path string) bool {
	return a.allowed && (a.paths == nil || a.paths[path])
}
