package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
	serverstatus "github.com/plinth-io/plinth/server/status"
)

// TestStatus asks each of the plinths on a database, for people and for programs.
func TestStatus(t *testing.T) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn, dir := d.Fresh(t), t.TempDir()
		first := serveFor(t, filepath.Join(dir, "first"), dsn)
		all := []*process{first}
		if d.Servers > 1 {
			must(t, os.CopyFS(filepath.Join(dir, "second", "pki"), os.DirFS(filepath.Join(dir, "first", "pki"))))
			all = append(all, serveFor(t, filepath.Join(dir, "second"), dsn))
		}
		_, err := kubernetes.NewForConfigOrDie(first.config(t)).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{})
		must(t, err)
		for i, p := range all {
			var s status
			soon(t, "all plinths are known", func() bool {
				s = status{}
				must(t, json.Unmarshal([]byte(askStatus(t, "--kubeconfig", first.kubeconfig(), "--server", p.url, "-o", "json")), &s))
				return len(s.Replicas) == len(all)
			})
			if s.Ready == nil || !*s.Ready || s.Server != p.url || s.Database.Rows == nil || *s.Database.Rows < *s.Database.Objects || s.Watches.Open == 0 {
				t.Errorf("%+v", s)
			}
			versions := map[string]bool{}
			for j, r := range s.Replicas {
				versions[r.Version] = true
				if r.Asked != (j == 0) || r.Revision == 0 || r.Since.IsZero() {
					t.Errorf("plinth %d, as %d tells of it: %+v", j, i, r)
				}
			}
			if len(versions) != 1 || versions[""] {
				t.Errorf("versions %v", versions)
			}
			text := askStatus(t, "--kubeconfig", first.kubeconfig(), "--server", p.url)
			for _, line := range []string{`Ready +yes`, `Rows +\d+, \d+ of them old versions`, `Watches +\d+[,;] .*`, `Alarms +\S.*`, `Faults +\S.*`, `REPLICA +ADDRESS .*`, `\S+ \(asked\) .*`, `LARGEST +OBJECTS +SIZE`} {
				if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(text) {
					t.Errorf("no line %s in\n%s", line, text)
				}
			}
		}
	})
}

// askStatus returns what the command prints.
func askStatus(t *testing.T, args ...string) string {
	t.Helper()
	cmd, stderr := plinth(t, nil, append([]string{"status"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("plinth status %s: %v: %s%s", strings.Join(args, " "), err, out, stderr)
	}
	return string(out)
}

// TestStatusBackups shows the files that a plinth has made at intervals, and nothing of them if it makes none.
func TestStatusBackups(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	p := serveFor(t, filepath.Join(t.TempDir(), "data"), "", "--backup-interval", "24h", "--backup-dir", dir)
	var s status
	soon(t, "a backup was made", func() bool {
		s = status{}
		must(t, json.Unmarshal([]byte(askStatus(t, "--kubeconfig", p.kubeconfig(), "-o", "json")), &s))
		return s.Backups != nil && s.Backups.Count > 0
	})
	f := s.Backups.Files[0]
	info, err := os.Stat(filepath.Join(dir, f.Name))
	must(t, err)
	if info.Size() != f.Bytes || f.Revision == 0 || f.Revision > *s.Database.Revision || time.Since(f.Time) > time.Hour || len(s.Backups.Files) != 1 {
		t.Errorf("%+v, of %d bytes", s.Backups, info.Size())
	}
	text := askStatus(t, "--kubeconfig", p.kubeconfig())
	for _, line := range []string{`Backups +1, the newest of 20\S+Z`, `BACKUP +TAKEN +REVISION +SIZE`, regexp.QuoteMeta(f.Name) + ` +20\S+Z +\d+ +\S+ KiB`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(text) {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, dir) {
		t.Errorf("the directory is in\n%s", text)
	}
	without := serveFor(t, filepath.Join(t.TempDir(), "data"), "")
	if text := askStatus(t, "--kubeconfig", without.kubeconfig()); regexp.MustCompile(`(?mi)^backup`).MatchString(text) {
		t.Errorf("backups in\n%s", text)
	}
}

// TestBackupsText has folders that can and cannot be read.
func TestBackupsText(t *testing.T) {
	at := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	files := []serverstatus.BackupFile{{Time: at}}
	for want, b := range map[string]serverstatus.Backups{
		"none yet":                                 {Read: at},
		"9, the newest of 2026-11-22T07:00:00Z":    {Read: at, Count: 9, Files: files},
		"the folder cannot be read: no permission": {Fault: "no permission"},
		"9, the newest of 2026-11-22T07:00:00Z; the folder cannot be read since 2026-11-22T07:00:00Z: away": {Read: at, Count: 9, Files: files, Fault: "away"},
	} {
		if got := backupsText(&b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestStatusFaults stops the database of a plinth, which tells of the outage then, and remembers it.
func TestStatusFaults(t *testing.T) {
	t.Parallel()
	db := logtest.StartPostgres(t)
	p := serveFor(t, filepath.Join(t.TempDir(), "data"), logtest.CreateDatabase(t, db))
	db.Stop()
	soon(t, "reads lack what others may have written", func() bool {
		return regexp.MustCompile(`(?m)^plinth_replica_lag_seconds [1-9]`).MatchString(request(t, p, "GET", "/metrics", ""))
	})
	cmd, stderr := plinth(t, nil, "status", "--kubeconfig", p.kubeconfig())
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(stderr.String(), "plinth: not ready: storage failed: ") {
		t.Errorf("while the database is away: %v: %s", err, stderr)
	}
	for _, line := range []string{`Ready +no: storage failed: .*`, `Faults +outage since 20\S+: database .*`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).Match(out) {
			t.Errorf("no line %s in\n%s", line, out)
		}
	}
	must(t, db.Start())
	expectBack(t, p)
	soon(t, "nothing is missing any more", func() bool {
		return strings.Contains(request(t, p, "GET", "/metrics", ""), "\nplinth_replica_lag_seconds 0\n")
	})
	if out := askStatus(t, "--kubeconfig", p.kubeconfig()); !regexp.MustCompile(`(?m)^Faults +outage at 20\S+ for \S+: `).MatchString(out) {
		t.Errorf("afterwards:\n%s", out)
	}
}

// TestStatusOfOthers asks a plinth of an older release, and one that tells the user nothing of itself.
func TestStatusOfOthers(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"older": http.StatusNotFound, "no right": http.StatusForbidden} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/version":
				fmt.Fprint(w, `{"gitVersion":"v1.37.2+plinth-v0.1.0"}`)
			case "/readyz":
				fmt.Fprint(w, "[+]ping ok\nwarn: alarm disk_low: nearly full\nreadyz check passed\n")
			case "/metrics":
				fmt.Fprint(w, "# TYPE plinth_log_rows gauge\nplinth_log_rows 7\n")
			default:
				http.Error(w, "no", code)
			}
		}))
		defer server.Close()
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		must(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]}`), 0o600))
		out := askStatus(t, "--kubeconfig", kubeconfig, "--server", server.URL)
		if !strings.Contains(out, "Version  v0.1.0, ") || strings.Contains(out, "7, with history") != (name == "older") {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// TestUntil has ends of certificates, near and far.
func TestUntil(t *testing.T) {
	for left, want := range map[time.Duration]string{
		49 * time.Hour: "in 2 days", time.Hour: "in less than a day",
		-time.Second: "less than a day ago", -49 * time.Hour: "2 days ago",
	} {
		if got := until(time.Now().Add(left)); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}
