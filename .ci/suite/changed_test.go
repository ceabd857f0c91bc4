package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const rooms = `
-- go.mod --
module example.org/rooms

go 1.26
-- docs/sql.md --
text
-- migrations/migrations.go --
package migrations

import _ "embed"

//go:embed one.sql
var One string
-- migrations/one.sql --
SELECT 1
-- low/low.go --
package low

import _ "example.org/rooms/migrations"
-- low/low_test.go --
package low
-- low/testdata/words --
words
-- high/high.go --
package high

import _ "example.org/rooms/low"
-- high/high_test.go --
package high_test
-- beside/beside.go --
package beside
-- beside/beside_test.go --
package beside_test

import _ "example.org/rooms/helptest"
-- helptest/helptest.go --
package helptest
-- helptest/testdata/given --
given
-- server/rest/rest.go --
package rest
-- server/rest/rest_test.go --
package rest
`

// TestChoose changes one thing after another in a repository, and each time forgets the change.
func TestChoose(t *testing.T) {
	dir := module(t, rooms)
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "before")
	git(t, dir, "checkout", "-q", "-b", "change")
	for _, c := range []struct {
		name   string
		change func()
		want   string
	}{
		{"nothing", func() {}, ""},
		{"a source, committed", func() {
			write(t, filepath.Join(dir, "low", "low.go"), "package low\n")
			git(t, dir, "commit", "-q", "-a", "-m", "a change")
		}, "high low"},
		{"a new source", func() { write(t, filepath.Join(dir, "high", "more.go"), "package high\n") }, "high"},
		{"a source is gone", func() { remove(t, filepath.Join(dir, "low", "low.go")) }, "high low"},
		{"a test", func() { write(t, filepath.Join(dir, "low", "low_test.go"), "package low_test\n") }, "low"},
		{"a file of tests", func() { write(t, filepath.Join(dir, "low", "testdata", "words"), "other") }, "low"},
		{"an embedded file", func() { write(t, filepath.Join(dir, "migrations", "one.sql"), "SELECT 2") }, "high low"},
		{"a file of a package for tests", func() { write(t, filepath.Join(dir, "helptest", "testdata", "given"), "other") }, "beside"},
		{"a package for tests", func() { write(t, filepath.Join(dir, "helptest", "helptest.go"), "package helptest\n\nvar A int\n") }, "beside"},
		{"a document that a test reads", func() { write(t, filepath.Join(dir, "docs", "sql.md"), "other") }, "server/rest"},
		{"a document that no test reads", func() { write(t, filepath.Join(dir, "docs", "other.md"), "other") }, ""},
		{"the version of Go", func() {
			write(t, filepath.Join(dir, "go.mod"), "module example.org/rooms\n\ngo 1.25\n")
		}, "beside high low server/rest"},
		{"a comment in go.mod", func() {
			write(t, filepath.Join(dir, "go.mod"), "module example.org/rooms\n\ngo 1.26 // of this year\n")
		}, ""},
	} {
		c.change()
		got, err := choose(dir, "main", "./...", "./.ci/suite", "./.ci/mutants")
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.packages {
			got.packages[i] = strings.TrimPrefix(got.packages[i], "example.org/rooms/")
		}
		if s := strings.Join(got.packages, " "); s != c.want || got.of != 4 {
			t.Errorf("%s: the packages are %q of %d, want %q", c.name, s, got.of, c.want)
		}
		git(t, dir, "reset", "-q", "--hard", "main")
		git(t, dir, "clean", "-q", "-d", "-f")
	}
}

func TestModulesChanged(t *testing.T) {
	dir := module(t, "\n-- go.mod --\nmodule a\n\ngo 1.26\n\nrequire (\n\texample.org/b v1.0.0\n\texample.org/c v1.0.0 // indirect\n)\n\nrequire example.org/d v1.0.0\n")
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "before")
	write(t, filepath.Join(dir, "go.mod"), "module a\n\ngo 1.26\n\nrequire (\n\texample.org/b v1.1.0\n\texample.org/c v1.0.0\n\texample.org/e v1.0.0\n)\n")
	modules, all, err := modulesChanged(dir, "HEAD", []string{"go.mod"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for m := range modules {
		names = append(names, m)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "example.org/b example.org/d example.org/e" || all {
		t.Errorf("changed are %q, all: %v", got, all)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}
