package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlan(t *testing.T) {
	had := withoutRace
	t.Cleanup(func() { withoutRace = had })
	withoutRace = []unwatched{{"cmd/plinth", nil, ofProcesses}, {"server", []string{"TestSlow", "TestSlower"}, "a"}, {"server/files", nil, "b"}}
	own := func(dirs ...string) (paths []string) {
		for _, d := range dirs {
			paths = append(paths, "github.com/plinth-io/plinth/"+d)
		}
		return paths
	}
	goTest := []string{"go", "test", "-vet=off"}
	all := own("bench", "cmd/plinth/past", "cmd/plinthother", "dialects", "server", "server/files", "server/lister", "server/rest", "cmd/plinth")
	watched, processes := own("server/rest", "bench", "cmd/plinthother"), own("cmd/plinth", "cmd/plinth/past")
	const slow = "^(TestSlow|TestSlower)$"
	command := func(packages []string, flags ...string) []string { return slices.Concat(goTest, flags, packages) }
	for _, c := range []struct {
		name        string
		packages    []string
		race, named bool
		want        [][][]string
	}{
		{"all", all, true, false, [][][]string{
			{command(own("server", "server/rest", "bench", "server/lister"), "-race", "-skip", slow)},
			{command(processes), command(own("server/files")), command(own("cmd/plinthother"), "-race", "-skip", slow)},
			{command(own("server"), "-run", slow), command(own("dialects"), "-race", "-skip", slow)},
		}},
		{"tests are named", all, true, true, [][][]string{
			{command(own("server", "server/rest", "bench", "server/lister", "dialects"), "-race")},
			{command(processes), command(own("server/files")), command(own("cmd/plinthother"), "-race")},
		}},
		{"nothing watched", processes, true, false, [][][]string{{command(processes)}}},
		{"all watched", watched, true, false, [][][]string{{command(watched, "-race")}}},
		{"without race", all, false, false, [][][]string{{
			command(own("server", "cmd/plinth", "server/rest", "bench", "server/lister", "server/files", "cmd/plinth/past", "cmd/plinthother", "dialects")),
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, plan(goTest, c.packages, c.race, c.named)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestQuick: tests of dialects run on all of them, others on SQLite alone, slow ones not at all, and heavy packages if they are chosen.
func TestQuick(t *testing.T) {
	hadSlow, hadHeavy := slow, heavy
	t.Cleanup(func() { slow, heavy = hadSlow, hadHeavy })
	slow, heavy = []string{"TestSlow", "TestSlower"}, []string{"dialectsnot"}
	goTest := []string{"go", "test"}
	const root = "github.com/plinth-io/plinth/"
	onSQLite := []string{"go", "test", "-skip", "^(TestSlow|TestSlower)$|/^(postgres|mariadb)$", root + "server", root + "dialectsnot"}
	onAll := []string{"go", "test", "-skip", "^(TestSlow|TestSlower)$", root + "dialects/logtest", root + "dialects"}
	for _, c := range []struct {
		name       string
		packages   []string
		everywhere bool
		want       [][][]string
	}{
		{"both", []string{root + "dialects", root + "dialectsnot", root + "dialects/logtest", root + "server"}, false, [][][]string{{onSQLite}, {onAll}}},
		{"dialects", []string{root + "dialects/logtest", root + "dialects"}, true, [][][]string{{onAll}}},
		{"others", []string{root + "dialectsnot", root + "server"}, false, [][][]string{{onSQLite}}},
		{"everywhere", []string{root + "dialectsnot", root + "server"}, true, [][][]string{{onSQLite[:len(onSQLite)-1]}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, quick(goTest, c.packages, c.everywhere)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestPlanned: the plan names what is there. A test that it names has its name for itself, because go test's -skip
// is for all packages.
func TestPlanned(t *testing.T) {
	tests := map[string][]string{} // by name, the directories that have it
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			return err
		}
		text, err := os.ReadFile(path)
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../"))
		for _, f := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
			tests[string(f[1])] = append(tests[string(f[1])], dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	has := func(dir string) bool {
		for _, dirs := range tests {
			if slices.Contains(dirs, dir) {
				return true
			}
		}
		return false
	}
	for _, u := range withoutRace {
		if u.why == "" || !has(u.dir) {
			t.Errorf("%s has no reason or no tests", u.dir)
		}
		for _, name := range u.tests {
			if d := cmp.Diff([]string{u.dir}, tests[name]); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
	for _, name := range slow {
		if tests[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	for _, dir := range slices.Concat(longest, long, heavy) {
		if !has(dir) {
			t.Errorf("%s has no tests", dir)
		}
	}
}
