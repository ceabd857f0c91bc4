package server

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"github.com/plinth-io/plinth/server/kind"
)

// KubernetesVersion is the release whose API is served.
const KubernetesVersion = kind.Release

const modulePath = "github.com/plinth-io/plinth"

// Release builds set these with the linker's flag -X. Else they are taken from what the Go
// command knows of the build.
var (
	buildVersion string // of plinth: v0.1.0
	buildCommit  string // followed by -dirty if files differed from it
	buildDate    string // RFC 3339
)

// Unknown stands in a Build for what is not known.
const Unknown = "unknown"

// Build is what this plinth was made of.
type Build struct {
	Version    string `json:"version"` // of plinth, "devel" if it was not built from a release
	Commit     string `json:"commit"`
	Date       string `json:"date"` // of the commit
	Tree       string `json:"treeState"`
	Kubernetes string `json:"kubernetesVersion"`
	Go         string `json:"goVersion"`
	Platform   string `json:"platform"`
}

// BuildInfo returns what is known of the build.
var BuildInfo = sync.OnceValue(func() Build {
	info, _ := debug.ReadBuildInfo()
	return describe(info)
})

// describe prefers what the linker has set to info, which may be nil.
func describe(info *debug.BuildInfo) Build {
	b := Build{
		Version: "devel", Commit: Unknown, Date: Unknown, Tree: Unknown,
		Kubernetes: KubernetesVersion, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info != nil {
		b.Version = cmp.Or(moduleVersion(info), b.Version)
	}
	if info != nil && info.Main.Path == modulePath { // else these are another program's
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Tree = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
			}
		}
	}
	b.Version, b.Date = cmp.Or(buildVersion, b.Version), cmp.Or(buildDate, b.Date)
	if buildCommit != "" {
		var dirty bool
		b.Tree = "clean"
		if b.Commit, dirty = strings.CutSuffix(buildCommit, "-dirty"); dirty {
			b.Tree = "dirty"
		}
	}
	return b
}

// moduleVersion returns the version of plinth's module in a program, if it is known.
func moduleVersion(info *debug.BuildInfo) string {
	found := info.Main
	for _, dep := range info.Deps {
		if dep.Path == modulePath {
			found = *dep
		}
	}
	if found.Path != modulePath || found.Version == "(devel)" {
		return ""
	}
	return found.Version
}

// Version returns what /version answers: the Kubernetes release, with plinth's own
// version as semver's build metadata, v1.N.N+plinth-v0.1.0, so that clients which
// compare versions see the Kubernetes one, and with the releases that are emulated and may run beside this one.
func Version() version.Info {
	b := BuildInfo()
	emulated, oldest := kind.Emulated(), kind.Effective().MinCompatibilityVersion()
	known := func(value string) string { return strings.TrimPrefix(value, Unknown) }
	return version.Info{
		Major: kind.Major,
		Minor: kind.Minor,

		EmulationMajor: apiversion.Itoa(emulated.Major()), EmulationMinor: apiversion.Itoa(emulated.Minor()),
		MinCompatibilityMajor: apiversion.Itoa(oldest.Major()), MinCompatibilityMinor: apiversion.Itoa(oldest.Minor()),

		GitVersion:   KubernetesVersion + "+plinth-" + strings.ReplaceAll(b.Version, "+", "."),
		GitCommit:    known(b.Commit),
		GitTreeState: known(b.Tree),
		BuildDate:    known(b.Date),
		GoVersion:    b.Go,
		Compiler:     runtime.Compiler,
		Platform:     b.Platform,
	}
}

// Release returns plinth's own version, "devel" if it was not built from a release.
func Release() string { return BuildInfo().Version }
