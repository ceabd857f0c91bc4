package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const goMod = `module example.com/m

require (
	k8s.io/api v0.33.13
	k8s.io/kubernetes v1.33.13 // indirect
	k8s.io/utils v0.0.0-20241104100929-3ea5e8cea738
	sigs.k8s.io/yaml v1.4.0
)

replace (
	github.com/google/cel-go => github.com/google/cel-go v0.23.2
	sigs.k8s.io/yaml => sigs.k8s.io/yaml v1.4.0
)
`

var from, to = release{"33", "13"}, release{"37", "2"}

func TestParseRelease(t *testing.T) {
	for name, want := range map[string]release{"v1.37.2": to, "v1.37": {}, "1.37.2": {}, "v0.37.2": {}, "v1.38.0-rc.1": {}, "": {}} {
		got, err := parseRelease(name)
		if got != want || (err == nil) != (want != release{}) {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if r, err := releaseOf(goMod); r != from || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := releaseOf("module m\n"); err == nil {
		t.Error("a go.mod without Kubernetes has a release")
	}
}

// TestOwnRelease has plinth's own go.mod say which release is served, and all modules that are to move with it.
func TestOwnRelease(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	r, err := releaseOf(string(text))
	if err != nil || !r.isIn(string(text)) {
		t.Errorf("%v, %v", r, err)
	}
	recorded, err := os.ReadFile("../../" + discovery)
	if err != nil {
		t.Fatal(err)
	}
	if all := served(string(recorded)); !all["v1/pods"] || !all["apps/v1/deployments"] || len(all) < 80 {
		t.Errorf("%d resources are served: %v", len(all), all)
	}
}

func TestReplaced(t *testing.T) {
	moved := from.replaced(goMod, to)
	for _, want := range []string{"\tk8s.io/api v0.37.2\n", "\tk8s.io/kubernetes v1.37.2 // indirect\n", "\tk8s.io/utils v0.0.0-2024", "cel-go v0.23.2"} {
		if !strings.Contains(moved, want) {
			t.Errorf("no %q in\n%s", want, moved)
		}
	}
	if from.isIn(moved) || !to.isIn(moved) {
		t.Errorf("the release of\n%s", moved)
	}
	if again := to.replaced(moved, from); again != goMod {
		t.Errorf("there and back:\n%s", again)
	}
}

func TestWithRequires(t *testing.T) {
	paths := staged("require (\n\tk8s.io/api v0.0.0\n\tk8s.io/cri-streaming v0.0.0\n\tk8s.io/utils v0.0.0-2024\n\tk8s.io/klog/v2 v2.1.0\n)\n")
	if !slices.Equal(paths, []string{"k8s.io/api", "k8s.io/cri-streaming"}) {
		t.Fatal(paths)
	}
	if got := withRequires(goMod, paths, to); got != goMod+"\nrequire (\n\tk8s.io/cri-streaming v0.37.2\n)\n" {
		t.Errorf("%s", got)
	}
	if got := withRequires(goMod, paths[:1], to); got != goMod {
		t.Errorf("%s", got)
	}
}

func TestAPIServerModule(t *testing.T) {
	text := apiserverModule(to)
	if r, err := releaseOf(text); r != to || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	if got := withRequires(text, []string{"k8s.io/api"}, to); !strings.Contains(got, "\tk8s.io/api v0.37.2\n") || !to.isIn(got) {
		t.Errorf("%s", got)
	}
}

func TestRequired(t *testing.T) {
	want := []string{"k8s.io/api v0.33.13", "k8s.io/kubernetes v1.33.13", "k8s.io/utils v0.0.0-20241104100929-3ea5e8cea738", "sigs.k8s.io/yaml v1.4.0"}
	if got := required(goMod); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestFollowed(t *testing.T) {
	got := followed(goMod, []string{"github.com/google/cel-go v0.29.1", "k8s.io/api v0.37.2"})
	if got != strings.Replace(goMod, "cel-go v0.23.2", "cel-go v0.29.1", 1) {
		t.Errorf("%s", got)
	}
}

func TestRenamed(t *testing.T) {
	const text = "v1.33.13 1.33.13-linux 11.33.13 1.33.130 1.33 x1.33.13"
	if got := from.renamed(text, to); got != "v1.37.2 1.37.2-linux 11.33.13 1.33.130 1.33 x1.33.13" {
		t.Error(got)
	}
}

func TestMinorPattern(t *testing.T) {
	for text, want := range map[string]bool{"1.33": true, "v1.33,": true, "Kubernetes 1.33.13.": true, "1.331": false, "11.33": false, "1.1.33": false, "1x33": false} {
		if regexp.MustCompile(from.minorPattern()).MatchString(text) != want {
			t.Errorf("%q", text)
		}
	}
}

func TestServed(t *testing.T) {
	got := served("# x\n=> 200\n" +
		`{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"pods","subresources":[{"subresource":"log"}]}]}]}` + "\n" +
		`{"metadata":{"name":"apps","creationTimestamp":null},"versions":[{"version":"v1","resources":[{"resource":"deployments"}]},{"version":"v2"}]}` + "\n")
	if names := missing(nil, got); !slices.Equal(names, []string{"apps/v1/deployments", "v1/pods"}) {
		t.Error(names)
	}
	if names := missing(got, map[string]bool{"v1/pods": true, "v1/nodes": true}); !slices.Equal(names, []string{"v1/nodes"}) {
		t.Error(names)
	}
}

func TestTypeErrors(t *testing.T) {
	p := typeErrors("# example.com/a\na/a.go:1:2: undefined: x\na/b.go:3:4: undefined: y\n# example.com/b [example.com/b.test]\nb/b_test.go:5:6: undefined: z\nfoot\n")
	if len(p.lines) != 3 || len(p.packages) != 2 || !p.packages["example.com/b"] {
		t.Errorf("%v", p)
	}
}
