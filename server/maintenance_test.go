package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/status"
	"github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

// TestRestoreDrill makes backups through a server while clients write, restores each into a database of
// another dialect, and compares every object with what a watch had seen up to the backup's revision.
func TestRestoreDrill(t *testing.T) {
	for i, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			one, other := startBoth(t, d, Config{})
			seen := watchAll(t, one)
			stop := writeAll(t, one, other)
			seen.awaitFirst(t)
			var files [][]byte
			for n := range 3 {
				time.Sleep(200 * time.Millisecond) // of load
				files = append(files, getBackup(t, []*Server{one, other}[n%2], n == 1))
			}
			stop()
			for n, file := range files {
				to := logtest.Dialects[(i+1+n)%len(logtest.Dialects)]
				dsn := to.Fresh(t)
				h := restoreBackup(t, file, dsn)
				restored := start(t, Config{DSN: dsn})
				want, got := seen.at(t, h.Revision), listAll(t, restored)
				if len(want) == 0 {
					t.Error("a backup from before the first write proves nothing")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("backup %d at %d, restored to %s (-seen +restored)\n%s", n, h.Revision, to.Name, diff)
				}
				wantGone(t, restored, h.Revision)
			}
		})
	}
}

// wantGone asks to resume at the revision of a backup and above, which clients of the old server may do.
func wantGone(t *testing.T, s *Server, revision int64) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(s.RESTConfig())
	for _, from := range []int64{revision, revision + 1, revision + 100_000} {
		_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{ResourceVersion: strconv.FormatInt(from, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("a list at %d: %v", from, err)
		}
	}
}

// witnessed is what a watch of all ConfigMaps in default has seen, by revision.
type witnessed struct {
	mu     sync.Mutex
	events []watch.Event
}

func watchAll(t *testing.T, s *Server) *witnessed {
	t.Helper()
	client, h := kubernetes.NewForConfigOrDie(s.RESTConfig()), &witnessed{}
	w, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	must(t, err)
	t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			h.mu.Lock()
			h.events = append(h.events, e)
			h.mu.Unlock()
		}
	}()
	return h
}

// awaitFirst waits for the first event.
func (h *witnessed) awaitFirst(t *testing.T) {
	t.Helper()
	until(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.events) > 0
	})
}

// at returns the state at a revision: names with versions and data.
func (h *witnessed) at(t *testing.T, revision int64) map[string]string {
	t.Helper()
	last := func() int64 {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.events) == 0 {
			return 0
		}
		return revisionOf(h.events[len(h.events)-1])
	}
	apitest.Eventually(t, "the watch has come so far", func() bool { return last() >= revision })
	state := map[string]string{}
	for _, e := range h.events {
		if revisionOf(e) > revision {
			break
		}
		o := e.Object.(*corev1.ConfigMap)
		if state[o.Name] = textOf(o); e.Type == watch.Deleted {
			delete(state, o.Name)
		}
	}
	return state
}

func revisionOf(e watch.Event) int64 {
	o, ok := e.Object.(*corev1.ConfigMap)
	if !ok {
		return 0
	}
	n, _ := strconv.ParseInt(o.ResourceVersion, 10, 64)
	return n
}

func textOf(o *corev1.ConfigMap) string {
	return fmt.Sprint(o.ResourceVersion, o.UID, o.CreationTimestamp, o.Labels, o.Data, o.ManagedFields)
}

func listAll(t *testing.T, s *Server) map[string]string {
	t.Helper()
	list, err := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	state := map[string]string{}
	for i := range list.Items {
		if o := &list.Items[i]; o.Name != "kube-root-ca.crt" {
			state[o.Name] = textOf(o)
		}
	}
	return state
}

// writeAll has clients create, change and delete ConfigMaps until stop is called. After it they write
// once more, so that a watch sees an end.
func writeAll(t *testing.T, servers ...*Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for n := range 4 {
		client := kubernetes.NewForConfigOrDie(servers[n%len(servers)].RESTConfig()).CoreV1().ConfigMaps("default")
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				time.Sleep(5 * time.Millisecond) // what is written is compared
				o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d-%d", n, i/4)}, Data: map[string]string{"i": strconv.Itoa(i), "pad": strings.Repeat("x", i*37%2000)}}
				var err error
				switch {
				case i%4 == 0:
					_, err = client.Create(t.Context(), o, metav1.CreateOptions{})
				case i%12 == 11:
					err = client.Delete(t.Context(), o.Name, metav1.DeleteOptions{})
				default:
					_, err = client.Update(t.Context(), o, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		writers.Wait()
		_, err := kubernetes.NewForConfigOrDie(servers[0].RESTConfig()).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "last"}}, metav1.CreateOptions{})
		must(t, err)
	}
}

func getBackup(t *testing.T, s *Server, history bool) []byte {
	t.Helper()
	code, header, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+backups.Path+"?history="+strconv.FormatBool(history), "")
	if code != 200 || header.Get("Content-Type") != "application/octet-stream" {
		t.Fatalf("%d %v %.200s", code, header, body)
	}
	h, report, err := backup.Verify(t.Context(), strings.NewReader(body), scrub.Options{Found: func(p scrub.Problem) { t.Error(p) }})
	if err != nil || report.Rows == 0 || h.History != history {
		t.Errorf("%+v %+v %v", h, report, err)
	}
	return []byte(body)
}

func restoreBackup(t *testing.T, file []byte, dsn string) backup.Header {
	t.Helper()
	target, err := dialects.Open(t.Context(), dsn, dialects.Options{})
	must(t, err)
	r, err := backup.Restore(t.Context(), target, bytes.NewReader(file), nil)
	must(t, errors.Join(err, target.Close()))
	return r.Header
}

// Files are made at intervals, by one of two servers at a time, and the oldest are removed. A file that
// somebody else has put there stays.
func TestBackupInterval(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dir := filepath.Join(t.TempDir(), "deep", "backups")
		const every = 400 * time.Millisecond
		must(t, os.MkdirAll(dir, 0o700))
		one, _ := startBoth(t, d, Config{BackupInterval: every, BackupDir: dir, BackupKeep: 2})
		must(t, os.WriteFile(filepath.Join(dir, "mine.plinth"), nil, 0o600))
		seen := map[string]bool{}
		names := func() (names []string) {
			entries, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), "plinth-"+one.store.Source().ClusterID()) {
					names, seen[e.Name()] = append(names, e.Name()), true
				}
			}
			return names
		}
		apitest.Eventually(t, "several backups were made", func() bool {
			if n := len(names()); n > 3 {
				t.Errorf("%d files, of which 2 are to be kept", n)
			}
			return len(seen) >= 5
		})
		var times []time.Time
		for name := range seen {
			rest := strings.TrimPrefix(name, "plinth-"+one.store.Source().ClusterID()+"-")
			at, err := time.Parse("20060102T150405.000Z", rest[:len("20060102T150405.000Z")])
			must(t, err)
			times = append(times, at)
		}
		slices.SortFunc(times, time.Time.Compare)
		// A turn begins an interval after the one before at the earliest, and a busy machine delays what it makes. All of them
		// together take longer than if both servers made one in each interval, which is half as long.
		if n := len(times) - 1; times[n].Sub(times[0]) < time.Duration(n)*every*5/8 {
			t.Errorf("backups were made at %v", times)
		}
		kept := names()
		file, err := os.Open(filepath.Join(dir, kept[len(kept)-1]))
		must(t, err)
		defer file.Close()
		if _, report, err := backup.Verify(t.Context(), file, scrub.Options{}); err != nil || report.Objects < 10 {
			t.Errorf("%+v, %v", report, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "mine.plinth")); err != nil {
			t.Error(err)
		}
		if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
}

// The status has the files that exist, for those who may read it, and not where they are.
func TestStatusBackups(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	s := start(t, Config{BackupInterval: time.Hour, BackupDir: dir})
	var got status.Status
	apitest.Eventually(t, "a backup was made", func() bool {
		_, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+cluster.StatusPath, "")
		got = status.Status{}
		if err := json.Unmarshal([]byte(body), &got); err != nil || strings.Contains(body, dir) {
			t.Fatal(err, body)
		}
		return got.Backups.Count == 1
	})
	f := got.Backups.Files[0]
	file, err := os.Open(filepath.Join(dir, f.Name))
	must(t, err)
	defer file.Close()
	info, err := file.Stat()
	must(t, err)
	h, _, err := backup.Verify(t.Context(), file, scrub.Options{})
	if err != nil || h.Revision != f.Revision || !h.Time.Truncate(time.Millisecond).Equal(f.Time) || info.Size() != f.Bytes {
		t.Errorf("%+v is %+v, of %d bytes, %v", f, h, info.Size(), err)
	}
	none := start(t, Config{})
	if _, _, body := apitest.Do(t, apitest.Admin(t, none), "GET", none.URL()+cluster.StatusPath, ""); strings.Contains(body, "backups\":") {
		t.Errorf("without an interval: %s", body)
	}
}

// A backup that fails is logged and counted, and made when it is possible.
func TestBackupFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	must(t, os.WriteFile(dir, nil, 0o600)) // in the way
	var log lockedBuffer
	s := start(t, Config{BackupInterval: 500 * time.Millisecond, BackupDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	metrics := func() string {
		_, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/metrics", "")
		return body
	}
	apitest.Eventually(t, "a backup has failed", func() bool {
		return strings.Contains(log.String(), "a backup failed; it is tried again") && !strings.Contains(metrics(), "plinth_backup_failure_timestamp_seconds 0\n")
	})
	if !strings.Contains(metrics(), "plinth_backup_success_timestamp_seconds 0\n") {
		t.Error("it was counted as a success")
	}
	must(t, os.Remove(dir))
	apitest.Eventually(t, "a backup was made", func() bool { return !strings.Contains(metrics(), "plinth_backup_success_timestamp_seconds 0\n") })
}

// Damage is found, logged and counted.
func TestScrubInterval(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		var log lockedBuffer
		s, other := startBoth(t, d, Config{ScrubInterval: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
		// What is in the metrics follows what is in the log: they are read no more often than they may have changed.
		has := func(line string) bool {
			return strings.Contains(scrape(t, s), line) || strings.Contains(scrape(t, other), line)
		}
		said := func(line string) bool { return strings.Contains(log.String(), line) }
		apitest.Eventually(t, "the database was searched", func() bool { return said("no damage in the database") })
		if has("plinth_scrub_problems 1\n") {
			t.Errorf("problems in %s", log.String())
		}
		if !toldDigest.MatchString(scrape(t, s)) && !toldDigest.MatchString(scrape(t, other)) {
			t.Error("no digest was told")
		}
		logtest.Exec(t, s.config.DSN, `UPDATE log SET author = 7777 WHERE id = 3`)
		apitest.Eventually(t, "damage was found", func() bool {
			return said("its author has number 7777, which nobody has") && has("plinth_scrub_problems 1\n")
		})
		logtest.Exec(t, s.config.DSN, `DROP VIEW history`)
		apitest.Eventually(t, "a search that meets what cannot be read goes on, and the alarm is on", func() bool {
			return said("view history: it is missing") && has(`plinth_alarm{alarm="damage"} 1`)
		})
		if said("could not be searched for damage") {
			t.Error(log.String())
		}
	})
}

var toldDigest = regexp.MustCompile(`(?m)^plinth_scrub_digest\{digest="[0-9a-f]{32}",revision="[1-9][0-9]*"\} 1$`)

func scrape(t *testing.T, s *Server) string {
	t.Helper()
	_, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/metrics", "")
	return body
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
