package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// recordedEtcd returns a file with the snapshot of an etcd on which a kube-apiserver ran, and the
// encryption configuration of that; see server/upstream.
func recordedEtcd(t *testing.T) (snapshot, encryption string) {
	t.Helper()
	testdata := filepath.Join(repository, "server", "upstream", "testdata")
	packed, err := os.ReadFile(filepath.Join(testdata, "snapshot.db.gz"))
	must(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	content, err := io.ReadAll(r)
	must(t, err)
	snapshot = filepath.Join(t.TempDir(), "snapshot.db")
	must(t, os.WriteFile(snapshot, content, 0o600))
	text, err := os.ReadFile(filepath.Join(testdata, "encryption.yaml"))
	must(t, err)
	encryption = filepath.Join(t.TempDir(), "encryption.yaml")
	must(t, os.WriteFile(encryption, text, 0o600))
	return snapshot, encryption
}

// TestImportCommand imports a snapshot and has kubectl read what came of it.
func TestImportCommand(t *testing.T) {
	t.Parallel()
	snapshot, encryption := recordedEtcd(t)
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn, dir := d.Fresh(t), t.TempDir()
		args := []string{"import", "--etcd=" + snapshot, "--encryption-provider-config=" + encryption}
		code, out := printed(t, append(args, "--dry-run")...)
		if code != 0 || !strings.Contains(out, "\nwould import 220 objects of 35 resources; the revision of the source is 410\n") {
			t.Errorf("dry run: exit code %d: %s", code, out)
		}
		documentedReport(t, out)
		args = append(args, "--dsn="+dsn)
		code, out = printed(t, append(args, "--output=json")...)
		var report upstream.Report
		if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || report.Objects != 220 {
			t.Fatalf("import: exit code %d, %v: %s", code, err, out)
		}
		code, out = runPlinth(t, args...)
		if code != 1 || !strings.Contains(out, "holds objects already; write the DSN of an empty database") || strings.Count(out, "\n") != 1 {
			t.Errorf("a second import: exit code %d: %s", code, out)
		}
		s := startPlinth(t, nil, "serve", "--listen=127.0.0.1:0", "--data-dir="+dir, "--dsn="+dsn, "--encryption-provider-config="+encryption, "--service-cluster-ip-range=10.0.0.0/24")
		for args, want := range map[string]string{
			"get secret sealed -o jsonpath={.data.p}":        "cQ==",
			"get car sealed -o jsonpath={.spec.weight}":      "1500",
			"get node,pod,rc,ingress,cronjob,pdb -A -oname":  "node/n1",
			"get crd cars.acme.io -o jsonpath={.spec.scope}": "Namespaced",
		} {
			if got := kubectlOf(t, s.kubeconfig, args); !strings.Contains(got, want) {
				t.Errorf("kubectl %s: %s", args, got)
			}
		}
		code, out = runPlinth(t, "undo", "secret/sealed", "--yes", "--kubeconfig="+s.kubeconfig)
		if code != 1 || !strings.Contains(out, "secrets/sealed came with a copy or an import at revision ") {
			t.Errorf("undo of what was imported: exit code %d: %s", code, out)
		}
		if got := kubectlOf(t, s.kubeconfig, "get secret sealed -o name"); !strings.Contains(got, "secret/sealed") {
			t.Errorf("what was imported is gone: %s", got)
		}
	})
}

// documentedReport compares a report with the one in docs/moving.md, where lines are left out.
func documentedReport(t *testing.T, report string) {
	t.Helper()
	_, text, _ := strings.Cut(readDocument(t, "docs/moving.md"), "$ plinth import --etcd snapshot.db")
	text, _, _ = strings.Cut(text, "```")
	lines := strings.Split(strings.TrimSpace(text), "\n")[1:]
	for _, line := range lines {
		if line = strings.Replace(line, "imported", "would import", 1); line != "…" && !strings.Contains(report, line+"\n") {
			t.Errorf("docs/moving.md has a line that is not printed: %s", line)
		}
	}
	if len(lines) < 5 {
		t.Errorf("docs/moving.md has a report of %q", lines)
	}
}

// kubectlOf runs kubectl with a kubeconfig.
func kubectlOf(t *testing.T, kubeconfig, args string) string {
	t.Helper()
	path, err := kubectltest.Path()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), path, strings.Fields(args)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %s: %v", args, err)
	}
	return string(out)
}

// printed runs plinth and returns what it writes to standard output.
func printed(t *testing.T, args ...string) (code int, stdout string) {
	t.Helper()
	cmd, stderr := plinth(t, nil, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Logf("%v: %s", err, stderr)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// TestImportBad has mistakes that are one line, and make nothing.
func TestImportBad(t *testing.T) {
	t.Parallel()
	snapshot, encryption := recordedEtcd(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.db")
	must(t, openedLog(t, "sqlite://"+plain).Close())
	content, err := os.ReadFile(snapshot)
	must(t, err)
	cut, other := filepath.Join(dir, "cut.db"), filepath.Join(dir, "other.yaml")
	must(t, os.WriteFile(cut, content[:len(content)/2], 0o600))
	text, err := os.ReadFile(encryption)
	must(t, err)
	must(t, os.WriteFile(other, bytes.ReplaceAll(text, []byte("MDEy"), []byte("MDE2")), 0o600))
	to := "--dsn=sqlite://" + dir + "/to.db"
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{to, "write where to read: --etcd URL", 2},
		{"--etcd=" + snapshot, "write the database: --dsn sqlite://plinth.db", 2},
		{"--etcd=" + cut + " " + to, "it has no checksum at its end: it is cut off", 2},
		{"--etcd=" + dir + "/none.db " + to, "no such file", 2},
		{"--etcd=" + snapshot + " " + to, "2 objects are encrypted, among them /registry/secrets/default/sealed; write --encryption-provider-config", 2},
		{"--etcd=" + snapshot + " --encryption-provider-config=" + other + " " + to, "with all keys that it has used", 2},
		{"--etcd=" + snapshot + " --encryption-provider-config=" + dir + "/none.yaml " + to, "--encryption-provider-config: ", 2},
		{"--etcd=" + snapshot + " --prefix=/kubernetes.io " + to, "there are no keys below /kubernetes.io", 2},
		{"--etcd=" + snapshot + " --prefix=/ " + to, "the prefix is empty; write /registry", 2},
		{"--etcd=" + snapshot + " --dsn=sqlite://:memory:", "a database in memory is gone", 2},
		{"--etcd=" + snapshot + " --dsn=oracle://u:s3cret@h/d", "--dsn: it begins with oracle://", 2},
		{"--etcd=" + snapshot + " --kine=sqlite://x " + to, "--etcd and --kine: write one of them", 2},
		{"--etcd=" + snapshot + " --follow " + to, "--follow: a snapshot does not change", 2},
		{"--etcd=" + snapshot + " --until-quiet=3s " + to, "--until-quiet goes with --follow", 2},
		{"--etcd=http://127.0.0.1:1 --follow --until-quiet=-1s " + to, "--until-quiet: -1s is no time to wait; write 30s", 2},
		{"--etcd=http://127.0.0.1:1 --follow --dry-run", "--follow writes, and --dry-run does not", 2},
		{"--kine=nats://u:s3cret@h " + to, "--kine: nats:// is a store of kine", 2},
		{"--kine=sqlite://" + dir + "/none.db " + to, "no such file", 1},
		{"--kine=sqlite://" + dir + "/to.db?_journal=WAL " + to, "--dsn: it is kine's own file", 2},
		{"--kine=sqlite://" + plain + " " + to, "there is no table kine; write the DSN of a database that kine has served", 2},
		{"--kine=postgres://u:s3cret@127.0.0.1:1/d " + to, "--kine: postgres://u@127.0.0.1:1/d: ", 1},
		{"--etcd=http://127.0.0.1:1 " + to, "--etcd: http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; check that the etcd runs and takes connections from here, or write the URL of another one, or the file of a snapshot", 1},
		{"--etcd=" + snapshot + " --encryption-provider-config=" + encryption + " --dsn=postgres://u:s3cret@127.0.0.1:1/d", "connection refused; check that it runs and takes connections from here, or write another DSN", 1},
		{"--etcd=ftp://127.0.0.1:1 " + to, "is no URL of an etcd; write http://HOST:PORT", 1},
		{"--etcd=https://127.0.0.1:1 --etcd-cafile=" + cut + " " + to, "--etcd-cafile: ", 1},
		{"--etcd=https://127.0.0.1:1 --etcd-certfile=" + cut + " " + to, "go together; write both", 2},
	} {
		code, out := runPlinth(t, append([]string{"import"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out, c.want) || strings.Contains(out, "s3cret") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s; want %s", c.args, code, out, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "to.db")); err == nil {
			t.Fatalf("%s: the target was made", c.args)
		}
	}
}

// TestImportFollow imports an etcd that is written to, and ends with a signal, or by itself.
func TestImportFollow(t *testing.T) {
	t.Parallel()
	url := "http://" + etcdtest.StartAt(t) // first: where etcd was never built, that takes minutes
	ctx := withPatience(t)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	must(t, err)
	defer c.Close()
	put := func(name string) {
		t.Helper()
		_, err := c.Put(ctx, "/registry/configmaps/n/"+name, fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"n"}}`, name))
		must(t, err)
	}
	put("before")
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "to.db")
	cmd, _ := plinth(t, nil, "import", "--etcd="+url, "--follow", "--dsn="+dsn)
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, nil
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "in step with the source; stop the kube-apiservers, then press Ctrl-C here") {
	}
	put("meanwhile")
	must(t, cmd.Process.Signal(os.Interrupt))
	for lines.Scan() {
	}
	must(t, cmd.Wait())
	if want := "imported 2 objects of 1 resources; the revision of the source is 3\nall changes up to there are taken; start plinth serve\n"; !strings.HasSuffix(stdout.String(), want) {
		t.Errorf("%s", &stdout)
	}
	log := openedLog(t, dsn)
	defer log.Close()
	must(t, changelog.HalfCopied(ctx, log))
	to := " --dsn=sqlite://" + filepath.Join(t.TempDir(), "to.db")
	_, err = c.Put(ctx, "/registry/masterleases/192.0.2.1", "{}")
	must(t, err)
	if code, out := runPlinth(t, strings.Fields("import --etcd="+url+" --dsn=sqlite://"+filepath.Join(t.TempDir(), "to.db"))...); code != 0 || !strings.Contains(out, "a kube-apiserver runs") || !strings.Contains(out, "address=192.0.2.1") {
		t.Errorf("beside a kube-apiserver: exit code %d: %s", code, out)
	}
	if code, out := printed(t, strings.Fields("import --follow --until-quiet=300ms --etcd="+url+to)...); code != 0 || !strings.Contains(out, "imported 2 objects") {
		t.Errorf("until it is quiet: exit code %d: %s", code, out)
	}
}
