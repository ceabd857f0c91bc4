package main

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// languages are the languages of blocks that are not shell blocks. A fence without a language is an
// error, because it would not be known whether the block has to be played.
var languages = []string{"go", "ini", "sql", "text", "yaml"}

func TestDocumentLanguages(t *testing.T) {
	t.Parallel()
	for _, doc := range documents(t) {
		for _, b := range blocksOf(doc, readDocument(t, doc)) {
			if !b.shell() && !slices.Contains(languages, b.language) {
				t.Errorf("%s: the block is of the language %q; write console for commands with a prompt, or one of %v", b, b.language, languages)
			}
		}
	}
}

var (
	span    = regexp.MustCompile("`([^`\n]+)`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// aPath matches what may be a path of the repository; see TestDocumentLinks.
	aPath = regexp.MustCompile(`^\.?[\w-][\w.-]*(/[\w.-]+)+/?$`)
)

// TestDocumentLinks looks up the files and headings that links name, and the paths in code spans. A
// code span is a path if its first part is the name of a directory of the repository.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	directories := directoriesOf(t)
	for _, doc := range documents(t) {
		text := withoutBlocks(readDocument(t, doc))
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := doc
			if file != "" {
				target = filepath.Join(filepath.Dir(doc), file)
			}
			if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			} else if anchor != "" && !slices.Contains(anchorsOf(readDocument(t, target)), anchor) {
				t.Errorf("%s links to %s, where no such heading is", doc, m[1])
			}
		}
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			first, _, _ := strings.Cut(m[1], "/")
			if !aPath.MatchString(m[1]) || !directories[first] {
				continue
			}
			if _, err := os.Stat(filepath.Join(repository, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", doc, m[1])
			}
		}
	}
}

// withoutBlocks leaves out fenced blocks, because they have no links.
func withoutBlocks(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
}

// anchorsOf are the names that GitHub gives to headings.
func anchorsOf(text string) []string {
	var anchors []string
	for _, m := range heading.FindAllStringSubmatch(withoutBlocks(text), -1) {
		anchor := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(anchor, " ", "-"))
	}
	return anchors
}

// inDataDir are directories of the documents' data directories whose names are in the repository, too.
var inDataDir = map[string]bool{"cluster": true, "pki": true}

// directoriesOf returns the names of all directories with source files.
func directoriesOf(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{".ci": true}
	for _, top := range []string{"bench", "cmd", "dialects", "docs", "migrations", "server", "sqlstore"} {
		must(t, filepath.WalkDir(filepath.Join(repository, top), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && !inDataDir[d.Name()] {
				names[d.Name()] = true
			}
			return err
		}))
	}
	return names
}

// setsOf are directories whose files have one line together.
var setsOf = []string{"docs/bench", "docs/scale", "docs/kubernetes", "docs/ui"}

// TestDocumentIndex looks for a line in README.md about each file of docs/.
func TestDocumentIndex(t *testing.T) {
	t.Parallel()
	readme := readDocument(t, "README.md")
	must(t, filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(repository, path)
		for _, dir := range setsOf {
			if strings.HasPrefix(name, dir+"/") {
				name = dir
			}
		}
		if err == nil && !regexp.MustCompile(`(?m)^\| .*\]\(`+regexp.QuoteMeta(name)+`\).* \| .+ \|$`).MatchString(readme) {
			t.Errorf("README.md has no line for %s in its table of documentation", name)
		}
		return err
	}))
}

// foreignFlags are those of other programs that documents name without the program: of kubelet,
// kube-controller-manager, kube-scheduler, k3s, etcdctl, docker and install.sh.
var foreignFlags = []string{"bootstrap-kubeconfig", "cacert", "cert", "client-ca-file", "datastore-endpoint", "dest-cacert", "dest-cert", "dest-insecure-transport", "dest-key", "key", "kube-api-burst", "kube-api-qps", "node-ip", "prefix", "public-key", "service-account-private-key-file", "token", "ulimit", "use-service-account-credentials"}

var flagName = regexp.MustCompile(`--([a-z][a-z0-9-]*)`)

// TestDocumentFlags looks up the flags in code spans, and those of plinth's commands in blocks.
func TestDocumentFlags(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"help": true, "version": true}
	collect(newRoot(), known)
	collect(newAPIServer(), known)
	newEtcdDropInOptions().flags().VisitAll(func(f *flag.Flag) { known[f.Name] = true })
	for _, doc := range documents(t) {
		text := readDocument(t, doc)
		check := func(where, command string) {
			for _, m := range flagName.FindAllStringSubmatch(command, -1) {
				if !known[m[1]] && !slices.Contains(foreignFlags, m[1]) && !strings.HasSuffix(m[1], "-") {
					t.Errorf("%s: there is no --%s, in %s", where, m[1], command)
				}
			}
		}
		for _, m := range span.FindAllStringSubmatch(withoutBlocks(text), -1) {
			if strings.HasPrefix(m[1], "--") || strings.HasPrefix(m[1], "plinth ") {
				check(doc, m[1])
			}
		}
		for _, b := range blocksOf(doc, text) {
			for _, line := range b.lines {
				if command := strings.TrimLeft(line, "$# "); strings.HasPrefix(command, "plinth ") {
					check(b.String(), command)
				}
			}
		}
	}
}

// collect adds the flags of a command and of those below it.
func collect(command *cobra.Command, known map[string]bool) {
	add := func(f *pflag.Flag) { known[f.Name] = true }
	command.Flags().VisitAll(add)
	command.PersistentFlags().VisitAll(add)
	for _, below := range command.Commands() {
		collect(below, known)
	}
}

// TestDocumentedMetrics compares the table of metrics in docs/production.md with the metrics that
// plinth exports. No document names any other metric.
func TestDocumentedMetrics(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "production.md"))
	must(t, err)
	p := serveFor(t, filepath.Join(t.TempDir(), "data"), logtest.SQLite(t))
	exported, err := kubernetes.NewForConfigOrDie(p.config(t)).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	documented := found(text, "(?m)^\\| `(plinth_[a-z_]+)` \\| (\\w+) \\|")
	real := found(exported, `(?m)^# TYPE (plinth_[a-z_]+) (\w+)$`)
	if len(real) == 0 {
		t.Fatalf("no plinth_ metrics in\n%s", exported)
	}
	for name, kind := range real {
		if documented[name] != kind {
			t.Errorf("%s is a %s; docs/production.md says %q", name, kind, documented[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if real[name] == "" {
			t.Errorf("docs/production.md has %s, which is not exported", name)
		}
	}
	for _, doc := range documents(t) {
		if doc == "docs/etcd.md" { // has those of plinth etcd, which a test of server/etcd compares
			continue
		}
		for name := range found([]byte(readDocument(t, doc)), `\b(plinth_[a-z_]*[a-z])\b()`) {
			if real[name] == "" {
				t.Errorf("%s names %s, which is not exported", doc, name)
			}
		}
	}
}

// found returns the second group of each match by the first group.
func found(text []byte, pattern string) map[string]string {
	parts := map[string]string{}
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		parts[string(m[1])] = string(m[2])
	}
	return parts
}
