package admission

import (
	"sync"
	"time"

	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
)

// Known are the names of all plugins of the table, and of those that do not run by default.
func Known() (names, off []string) {
	for _, p := range table {
		names = append(names, p.name)
		if p.off {
			off = append(off, p.name)
		}
	}
	return names, off
}

// EachUpstream calls f with the plugins of upstream, as the table describes them and as
// they are.
func EachUpstream(o Options, f func(name string, ours, upstream apiadmission.Interface, err error)) {
	connect := sync.OnceValues(func() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(o.Client) })
	for i := range table {
		if p := &table[i]; p.upstream != nil {
			upstream, err := p.open(&o, connect)
			f(p.name, &late{plugin: p, o: &o}, upstream, err)
		}
	}
}

// SetAccountPatience is for tests that must not depend on how fast a machine is.
func SetAccountPatience(d time.Duration) (undo func()) {
	before := accountPatience
	accountPatience = d
	return func() { accountPatience = before }
}
