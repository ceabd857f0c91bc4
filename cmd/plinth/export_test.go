package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
)

// TestExportCommand serves objects, exports them to a file and to an etcd, and imports the file again.
func TestExportCommand(t *testing.T) {
	t.Parallel()
	_, encryption := recordedFiles(t)
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn, before := servedFrom(t, d, encryption)
		args := []string{"export", "--encryption-provider-config=" + encryption, "--dsn=" + dsn}
		code, out := printed(t, append(args, "--dry-run")...)
		if code != 0 || !strings.Contains(out, "\nwould export ") || !strings.Contains(out, "left out: the API group history.plinth.io") {
			t.Errorf("dry run: exit code %d: %s", code, out)
		}
		file := filepath.Join(t.TempDir(), "export.db")
		args = append(args, "--etcd="+file)
		code, out = printed(t, append(args, "--output=json")...)
		var report upstream.ExportReport
		if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || report.Objects < 200 || len(report.NotWritten) > 0 || report.EtcdRevision != report.Revision+1 {
			t.Fatalf("export: exit code %d, %v: %s", code, err, out)
		}
		checkOwn(t, file)
		if code, out := runPlinth(t, args...); code != 2 || !strings.Contains(out, "it exists already; write the name of a file to make") || strings.Count(out, "\n") != 1 {
			t.Errorf("a second export: exit code %d: %s", code, out)
		}
		to := "sqlite://" + filepath.Join(t.TempDir(), "back.db")
		if code, out := runPlinth(t, "import", "--etcd="+file, "--dsn="+to, "--encryption-provider-config="+encryption); code != 0 {
			t.Fatalf("import: exit code %d: %s", code, out)
		}
		s := startPlinth(t, nil, "serve", "--listen=127.0.0.1:0", "--dsn="+to, "--encryption-provider-config="+encryption, "--service-cluster-ip-range=10.0.0.0/24")
		for args, want := range map[string]string{
			"get secret password -n shop -o jsonpath={.data.p}":  "cQ==",
			"get car beetle -n shop -o jsonpath={.metadata.uid}": before["acme.io/v1 cars shop/beetle"]["metadata"].(map[string]any)["uid"].(string),
			"get deploy,ing,hpa,pdb,cj,ev -n shop -oname":        "event/made",
		} {
			if got := kubectlOf(t, s.kubeconfig, args); !strings.Contains(got, want) {
				t.Errorf("kubectl %s: %s", args, got)
			}
		}
	})
}

// checkOwn expects that no object of plinth's own is in a file.
func checkOwn(t *testing.T, file string) {
	t.Helper()
	source, err := upstream.OpenSnapshot(t.Context(), file)
	must(t, err)
	defer source.Close()
	must(t, source.Each(t.Context(), "", func(page []upstream.Pair) error {
		for _, p := range page {
			if strings.Contains(p.Key, "plinth") {
				t.Errorf("%s was exported", p.Key)
			}
		}
		return nil
	}))
}

// recordedFiles is recordedEtcd with paths for a program in another directory.
func recordedFiles(t *testing.T) (snapshot, encryption string) {
	t.Helper()
	snapshot, encryption = recordedEtcd(t)
	encryption, err := filepath.Abs(encryption)
	must(t, err)
	return snapshot, encryption
}

// TestExportLive exports to an etcd that runs, once.
func TestExportLive(t *testing.T) {
	t.Parallel()
	dsn := logtest.SQLite(t)
	fill(t, dsn, 2000)
	url := "http://" + etcdtest.StartAt(t)
	args := []string{"export", "--dsn=" + dsn, "--etcd=" + url}
	code, out := printed(t, args...)
	if code != 0 || !strings.Contains(out, "    2000  configmaps\n") || !strings.Contains(out, "exported 2000 objects of 1 resources at revision 2000; the etcd's revision is ") {
		t.Errorf("exit code %d: %s", code, out)
	}
	code, out = runPlinth(t, args...)
	if code != 1 || !strings.Contains(out, "it has 2000 keys below /registry/ already; write the URL of an empty etcd; if an export that was killed has left them") {
		t.Errorf("a second export: exit code %d: %s", code, out)
	}
	if code, out = runPlinth(t, append(args, "--prefix=other")...); code != 0 {
		t.Errorf("another prefix: exit code %d: %s", code, out)
	}
}

// TestIsAddress tells addresses without a scheme from names of files.
func TestIsAddress(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1:2379": true, "[::1]:2379": true, "etcd:2379": true,
		"export.db": false, "./127.0.0.1:2379": false, "a:b": false, "http://127.0.0.1:2379": false, "": false,
	} {
		if isAddress(text) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// TestExportBad has mistakes that are one line, and make nothing.
func TestExportBad(t *testing.T) {
	t.Parallel()
	snapshot, encryption := recordedFiles(t)
	dir := t.TempDir()
	from := "--dsn=sqlite://" + dir + "/from.db"
	if code, out := runPlinth(t, "import", "--etcd="+snapshot, from, "--encryption-provider-config="+encryption); code != 0 {
		t.Fatal(out)
	}
	empty := openedLog(t, "sqlite://"+dir+"/empty.db")
	must(t, empty.Close())
	to := "--etcd=" + dir + "/to.db"
	text, err := os.ReadFile(encryption)
	must(t, err)
	other := filepath.Join(dir, "other.yaml")
	must(t, os.WriteFile(other, bytes.ReplaceAll(text, []byte("MDEy"), []byte("MDE2")), 0o600))
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{to, "write the database: --dsn sqlite://", 2},
		{from, "write the target: --etcd FILE", 2},
		{to + " --dsn=sqlite://" + dir + "/none.db", "write the DSN of a database that plinth has served", 2},
		{to + " --dsn=sqlite://" + dir + "/empty.db", "the database holds no objects; write the DSN", 2},
		{to + " --dsn=sqlite://:memory:", "a database in memory is empty", 2},
		{to + " --dsn=oracle://u:s3cret@h/d", "--dsn: it begins with oracle://", 2},
		{to + " " + from, "4 objects are encrypted, among them /registry/acme.io/cars/default/beetle; write --encryption-provider-config", 2},
		{to + " " + from + " --encryption-provider-config=" + other, "with all keys that it has used", 2},
		{to + " " + from + " --encryption-provider-config=" + dir + "/none.yaml", "--encryption-provider-config: ", 2},
		{to + " " + from + " --prefix=/", "the prefix is empty; write /registry", 2},
		{to + " " + from + " --event-ttl=-1s", "--event-ttl -1s is negative", 2},
		{from + " --encryption-provider-config=" + encryption + " --etcd=" + dir + "/none/to.db", "no such file or directory", 2},
		{from + " --encryption-provider-config=" + encryption + " --etcd=" + dir, "it exists already", 2},
		{from + " --encryption-provider-config=" + encryption + " --etcd=http://127.0.0.1:1", "--etcd: http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; check that the etcd runs and takes connections from here, or write the URL of another one, or the name of a file to make", 1},
		{from + " --encryption-provider-config=" + encryption + " --etcd=ftp://127.0.0.1:1", "is no URL of an etcd; write http://HOST:PORT", 1},
		{from + " --etcd=https://127.0.0.1:1 --etcd-certfile=a", "go together; write both", 2},
	} {
		code, out := runPlinth(t, append([]string{"export"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out, c.want) || strings.Contains(out, "s3cret") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s; want %s", c.args, code, out, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "to.db")); err == nil {
			t.Fatalf("%s: the target was made", c.args)
		}
	}
}
