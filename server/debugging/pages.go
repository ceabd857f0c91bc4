package debugging

import (
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/statusz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/compatibility"
	zpages "k8s.io/component-base/zpages/features"
)

// component is what upstream's pages call a kube-apiserver.
const component = "apiserver"

// Pages are upstream's pages about a component, by path: /flagz and /statusz.
// https://kubernetes.io/docs/reference/instrumentation/zpages/
type Pages map[string]http.Handler

// Handle adds a page. It is there for upstream's functions.
func (p Pages) Handle(path string, h http.Handler) { p[path] = h }

// AddFlags adds /flagz, which shows the flags of the command that the server runs in; nil: there is no such page. Flags with the
// annotation "classified" are not shown.
func (p Pages) AddFlags(flags flagz.Reader) {
	if flags != nil && utilfeature.DefaultFeatureGate.Enabled(zpages.ComponentFlagz) {
		flagz.Install(p, component, flags)
	}
}

// AddStatus adds /statusz, which shows versions, and the paths that there are at its first request.
func (p Pages) AddStatus(version compatibility.EffectiveVersion, paths func() []string) {
	if !utilfeature.DefaultFeatureGate.Enabled(zpages.ComponentStatusz) {
		return
	}
	page := sync.OnceValue(func() http.Handler {
		made := Pages{}
		statusz.Install(made, component, statusz.NewRegistry(version, statusz.WithListedPaths(paths())))
		return made[statusz.DefaultStatuszPath]
	})
	p.Handle(statusz.DefaultStatuszPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page().ServeHTTP(w, r) }))
}
