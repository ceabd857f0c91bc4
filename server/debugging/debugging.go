// Package debugging serves /debug/pprof, /debug/flags, /flagz and /statusz with upstream's handlers, for whoever looks
// into a running server. It owns the options about that. It must not know who may ask: the server's
// guard decides, as for every other path.
package debugging

import (
	"net/http"
	"runtime"

	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
)

// Options say what is served. The zero value serves nothing.
type Options struct {
	// Profiling serves /debug/pprof and /debug/flags, as kube-apiserver's --profiling does; there
	// it is on by default. Profiles show names of functions and objects' sizes, and goroutines
	// show the process's arguments.
	Profiling bool
	// Contention also records where goroutines wait for each other, which slows the process
	// down: kube-apiserver's --contention-profiling. Without Profiling it has no effect.
	Contention bool
	// SetVerbosity takes the text that a client puts to /debug/flags/v, and returns what to answer.
	// nil: there is no such path.
	SetVerbosity func(text string) (string, error)
}

// Paths are those that New answers, with all paths below those that end with a slash.
var Paths = []string{"/debug/pprof", "/debug/pprof/", "/debug/flags", "/debug/flags/"}

// New returns the handler of Paths, nil if nothing is served. end stops what it records.
func New(o Options) (handler http.Handler, end func()) {
	if !o.Profiling {
		return nil, func() {}
	}
	m := mux.NewPathRecorderMux("debug")
	routes.Profiling{}.Install(m)
	if o.SetVerbosity != nil {
		routes.DebugFlags{}.Install(m, "v", routes.StringFlagPutHandler(o.SetVerbosity))
	}
	if !o.Contention {
		return m, func() {}
	}
	runtime.SetBlockProfileRate(1)
	return m, func() { runtime.SetBlockProfileRate(0) }
}
