package server

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/version"
)

// KubernetesVersion is the release whose API is served.
const KubernetesVersion = "v1.33.13"

const modulePath = "github.com/plinth-io/plinth"

// Version returns what /version answers: the Kubernetes release, with plinth's own
// version as semver's build metadata, v1.33.13+plinth-v0.1.0, so that clients which
// compare versions see the Kubernetes one.
var Version = sync.OnceValue(func() version.Info {
	info := version.Info{
		Major:        "1",
		Minor:        "33",
		GitVersion:   KubernetesVersion + "+plinth-" + strings.ReplaceAll(Release(), "+", "."),
		GitTreeState: "clean",
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, _ := debug.ReadBuildInfo()
	if build == nil || build.Main.Path != modulePath {
		return info
	}
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			info.GitCommit = s.Value
		case s.Key == "vcs.time":
			info.BuildDate = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			info.GitTreeState = "dirty"
		}
	}
	return info
})

// Release returns plinth's own version, "devel" if it was not built from a release.
func Release() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	found := build.Main
	for _, dep := range build.Deps {
		if dep.Path == modulePath {
			found = *dep
		}
	}
	if found.Path != modulePath || found.Version == "" || found.Version == "(devel)" {
		return "devel"
	}
	return found.Version
}
