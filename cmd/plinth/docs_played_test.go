package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// settings are what the reader of a document has before the first block.
type settings struct {
	serves   bool                        // plinth runs from the beginning
	prelude  string                      // bash, before the first block
	files    map[string]string           // that its reader has in the working directory
	replaced func(t *testing.T) []string // pairs: what the document says, what is played instead
}

// documentSettings has the documents that need more than plinth, kubectl and an empty directory
// with a copy of docs.
var documentSettings = map[string]settings{
	"docs/operations.md": {serves: true, replaced: func(t *testing.T) []string {
		return []string{"postgres://plinth@db.example.com/plinth", logtest.Postgres(t)}
	}},
	"docs/history.md":    {serves: true},
	"docs/kubernetes.md": {serves: true},
	"docs/moving.md":     {serves: true},
	"docs/releases.md":   {serves: true},
	"docs/security.md":   {serves: true},
	"docs/backup.md": {serves: true, replaced: func(t *testing.T) []string {
		return []string{"postgres://plinth@db.example.com/plinth", logtest.Postgres(t)}
	}},
	// Nodes would not reach localhost, which stands for plinth.example.com otherwise.
	"docs/cluster.md": {replaced: func(*testing.T) []string {
		return []string{"worker-1 --server https://plinth.example.com", "worker-1 --server https://plinth.test", "addons --server https://plinth.example.com", "addons --server https://plinth.test"}
	}},
	"docs/etcd.md": {prelude: `
export PLINTH_LISTEN_CLIENT_URLS=http://127.0.0.1:0
sqlite3 state.db <"$(readlink docs)/../dialects/kine/testdata/sqlite.sql"
`},
	"docs/migrating.md":  {files: map[string]string{"old.yaml": oldIngress, "manifests/more/old.yaml": oldIngress}},
	"docs/production.md": {prelude: debianMachine},
	"docs/testing.md": {replaced: func(t *testing.T) []string {
		port := freePort(t)
		return []string{"127.0.0.1:2379", "127.0.0.1:" + freePort(t), "--secure-port 6443", "--secure-port " + port, "//localhost:6443", "//localhost:" + port}
	}},
}

// oldIngress is a manifest from 2019.
const oldIngress = `apiVersion: extensions/v1beta1
kind: Ingress
metadata:
  name: web
spec:
  backend:
    serviceName: web
    servicePort: 80
`

// debianMachine replaces the commands that would change the machine: those for users and owners of
// files, and systemctl, which runs the unit with the settings of its environment file, and waits for
// the last file that its start makes: tar fails if a folder changes while it reads it. It also makes a release.
const debianMachine = `
useradd() { :; }
userdel() { :; }
chown() { :; }
install() { # without -o OWNER and -g GROUP
  local args=()
  while [ $# -gt 0 ]; do
    case $1 in -o | -g) shift 2 ;; *) args+=("$1"); shift ;; esac
  done
  command install "${args[@]}"
}
systemctl() {
  case "$*" in
  daemon-reload) ;;
  "status plinth") kill -0 $unit ;;
  "start plinth" | "enable --now plinth") unit_start ;;
  "stop plinth" | "disable --now plinth") kill $unit; wait $unit ;;
  "restart plinth") kill $unit; wait $unit; unit_start ;;
  *) echo "systemctl $*: no stand-in"; return 1 ;;
  esac
}
unit_start() {
  mkdir -p -m 0700 "$ROOT/var/lib/plinth"
  rm -f "$ROOT/unit.out"
  (
    set -o allexport
    . "$ROOT/etc/plinth/plinth.env"
    exec $(sed -n "s|%S|$ROOT/var/lib|; s|^ExecStart=/|$ROOT/|p" "$ROOT/etc/systemd/system/plinth.service")
  ) >"$ROOT/unit.out" 2>>"$ROOT/unit.log" & unit=$!
  until grep -q ^export "$ROOT/unit.out" 2>/dev/null && [ -e "$ROOT/var/lib/plinth/pki/front-proxy-client.crt" ]; do kill -0 $unit; sleep 0.02; done
}
release=plinth_v0.1.0_linux_amd64
mkdir $release
cp -rL docs $release/docs
printf '#!/bin/sh\nexec env PLINTH_TEST_MAIN=1 %s "$@"\n' "$(readlink -f "$ROOT/bin/plinth")" >$release/plinth
chmod 0755 $release/plinth
tar -czf $release.tar.gz $release
rm -r $release
echo "0000000000000000000000000000000000000000000000000000000000000000  plinth_v0.1.0_linux_arm64.tar.gz" >SHA256SUMS
sha256sum $release.tar.gz >>SHA256SUMS
`

// TestDocumentsArePlayed plays the shell blocks of README.md, CONTRIBUTING.md and docs/*.md as
// their reader would, and compares what they show with what happens. A block that is not to be
// played has a comment directly above it that says why:
//
//	<!-- not played: needs the network -->
//
// The blocks of a document run in one shell, in their order, and each section (##) begins in
// the directory that the first began in. docs_shell_test.go says how servers and watches are
// played, and what is not compared.
func TestDocumentsArePlayed(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	for doc := range documentSettings {
		if !slices.Contains(docs, doc) {
			t.Errorf("there are settings for %s, which is not there", doc)
		}
	}
	for _, doc := range docs {
		t.Run(filepath.Base(doc), func(t *testing.T) {
			t.Parallel()
			playDocument(t, doc, documentSettings[doc])
		})
	}
}

func playDocument(t *testing.T, doc string, set settings) {
	blocks := slices.DeleteFunc(blocksOf(doc, readDocument(t, doc)), func(b block) bool { return !b.shell() })
	var shell *docShell
	commands, section := 0, 0
	for _, b := range blocks {
		if b.skip != "" {
			t.Logf("%s: not played: %s", b, b.skip)
			continue
		}
		if shell == nil {
			shell = set.shell(t)
		}
		if b.section != section {
			shell.mustRun(b.String(), `cd "$HOME"`)
			section = b.section
		}
		all, err := b.commands()
		must(t, err)
		for _, c := range all {
			shell.play(fmt.Sprintf("%s:%d", doc, c.line), c)
			commands++
		}
	}
	if shell != nil {
		shell.finish()
	}
	t.Logf("%d commands played", commands)
}

func (set settings) shell(t *testing.T) *docShell {
	t.Helper()
	var replaced []string
	if set.replaced != nil {
		replaced = set.replaced(t)
	}
	s := newDocShell(t, set.prelude, replaced...)
	for name, text := range set.files {
		path := filepath.Join(s.home(), name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	if set.serves {
		s.serve("the beginning", "plinth serve", nil)
	}
	return s
}
