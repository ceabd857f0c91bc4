package server

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/version"
)

func TestDescribe(t *testing.T) {
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}
	ours, theirs := debug.Module{Path: modulePath, Version: "v0.2.0"}, debug.Module{Path: "example.com/operator", Version: "v9"}
	for _, tt := range []struct {
		name   string
		info   *debug.BuildInfo
		linked [3]string
		want   Build
	}{
		{"nothing is known", nil, [3]string{}, Build{Version: "devel", Commit: Unknown, Date: Unknown, Tree: Unknown}},
		{"without vcs", &debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "(devel)"}}, [3]string{},
			Build{Version: "devel", Commit: Unknown, Date: Unknown, Tree: Unknown}},
		{"from a checkout", &debug.BuildInfo{Main: ours, Settings: vcs}, [3]string{},
			Build{Version: "v0.2.0", Commit: "0123456789", Date: "2026-01-02T03:04:05Z", Tree: "dirty"}},
		{"as a package", &debug.BuildInfo{Main: theirs, Deps: []*debug.Module{&ours}, Settings: vcs}, [3]string{},
			Build{Version: "v0.2.0", Commit: Unknown, Date: Unknown, Tree: Unknown}},
		{"linked", &debug.BuildInfo{Main: ours, Settings: vcs}, [3]string{"v1.0.0", "abcdef", "2027-01-01T00:00:00Z"},
			Build{Version: "v1.0.0", Commit: "abcdef", Date: "2027-01-01T00:00:00Z", Tree: "clean"}},
		{"linked with changes", nil, [3]string{"", "abcdef-dirty", ""},
			Build{Version: "devel", Commit: "abcdef", Date: Unknown, Tree: "dirty"}},
	} {
		buildVersion, buildCommit, buildDate = tt.linked[0], tt.linked[1], tt.linked[2]
		got := describe(tt.info)
		buildVersion, buildCommit, buildDate = "", "", ""
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Build{}, "Kubernetes", "Go", "Platform")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
		if got.Kubernetes == "" || got.Go == "" || got.Platform == "" {
			t.Errorf("%s: %+v is not complete", tt.name, got)
		}
	}
}

func TestVersion(t *testing.T) {
	emulated, oldest := Version().EmulationMajor+"."+Version().EmulationMinor, Version().MinCompatibilityMajor+"."+Version().MinCompatibilityMinor
	if emulated != "1.37" || oldest != "1.36" { // as kube-apiserver 1.37 says without flags
		t.Errorf("emulates %s, works beside %s", emulated, oldest)
	}
	got, err := version.ParseSemantic(Version().GitVersion)
	if err != nil {
		t.Fatal(err)
	}
	if want := version.MustParseSemantic(KubernetesVersion); got.LessThan(want) || want.LessThan(got) {
		t.Errorf("%s is not equal to %s in semver's order", got, want)
	}
	gomod, err := os.ReadFile("../go.mod")
	if err != nil || !strings.Contains(string(gomod), "k8s.io/kubernetes "+KubernetesVersion+"\n") {
		t.Errorf("go.mod requires another k8s.io/kubernetes than %s (%v)", KubernetesVersion, err)
	}
}
