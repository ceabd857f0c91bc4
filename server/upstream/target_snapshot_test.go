package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// filled returns a log with the recorded objects and an Event.
func filled(t *testing.T) changelog.Log {
	t.Helper()
	log := openLog(t, logtest.SQLite(t))
	take(t, openSnapshot(t), log, providers(t, "testdata/encryption.yaml"))
	write(t, log, "/registry/core/events/default/e", `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"default"}}`)
	return log
}

func dialEtcd(t *testing.T, address string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestSnapshotTarget has etcdutl restore what was exported, and an etcd serve that: keys have the
// revisions that they have in the log, older ones are compacted, Events have a lease, and writes go on.
func TestSnapshotTarget(t *testing.T) {
	p, log, dir := providers(t, "testdata/encryption.yaml"), filled(t), t.TempDir()
	file := filepath.Join(dir, "export.db")
	to, err := upstream.CreateSnapshot(file)
	must(t, err)
	report := give(t, log, to, p)
	head, err := log.Head(t.Context())
	must(t, err)
	if report.Revision != head.Revision || report.EtcdRevision != head.Revision+1 {
		t.Errorf("revisions %d and %d, the log's is %d", report.Revision, report.EtcdRevision, head.Revision)
	}
	out, err := exec.Command(etcdtest.Program(t, "etcdutl"), "snapshot", "status", file, "--write-out=json").CombinedOutput()
	must(t, err)
	var status struct{ Revision, TotalKey int64 }
	must(t, json.Unmarshal(out, &status))
	if status.Revision != report.EtcdRevision || status.TotalKey != report.Objects {
		t.Errorf("etcdutl shows revision %d and %d keys; want %d, %d", status.Revision, status.TotalKey, report.EtcdRevision, report.Objects)
	}
	data := filepath.Join(dir, "restored")
	out, err = exec.Command(etcdtest.Program(t, "etcdutl"), "snapshot", "restore", file, "--data-dir="+data).CombinedOutput()
	if err != nil {
		t.Fatalf("etcdutl: %v: %s", err, out)
	}
	c := dialEtcd(t, etcdtest.StartAt(t, "--data-dir="+data))
	rows, err := log.State(t.Context(), "", changelog.End, head.Revision, 10_000)
	must(t, err)
	revisions := map[int64]bool{}
	for _, r := range rows {
		revisions[r.Revision] = true
	}
	got, err := c.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	must(t, err)
	if got.Header.Revision != head.Revision+1 || got.Count != report.Objects {
		t.Errorf("revision %d, %d keys; want %d, %d", got.Header.Revision, got.Count, head.Revision+1, report.Objects)
	}
	for _, kv := range got.Kvs {
		if !revisions[kv.ModRevision] || kv.CreateRevision > kv.ModRevision || kv.Version < 1 {
			t.Errorf("%s has revision %d, made at %d, version %d", kv.Key, kv.ModRevision, kv.CreateRevision, kv.Version)
		}
		if event := strings.HasPrefix(string(kv.Key), "/registry/events/"); event != (kv.Lease != 0) {
			t.Errorf("%s has lease %d", kv.Key, kv.Lease)
		}
	}
	checkLease(t, c)
	if _, err := c.Get(t.Context(), "a", clientv3.WithRev(head.Revision)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a read at the log's revision: %v", err)
	}
	put, err := c.Put(t.Context(), "/registry/configmaps/default/new", "1")
	must(t, err)
	if put.Header.Revision != head.Revision+2 {
		t.Errorf("a put has revision %d", put.Header.Revision)
	}
}

// checkLease expects that the Event has what remains of an hour, to the minute.
func checkLease(t *testing.T, c *clientv3.Client) {
	t.Helper()
	got, err := c.Get(t.Context(), "/registry/events/default/e")
	must(t, err)
	if len(got.Kvs) != 1 {
		t.Fatalf("%d Events", len(got.Kvs))
	}
	lease, err := c.TimeToLive(t.Context(), clientv3.LeaseID(got.Kvs[0].Lease))
	must(t, err)
	// A test takes minutes at most.
	if ttl := time.Duration(lease.GrantedTTL) * time.Second; ttl > time.Hour || ttl < 50*time.Minute || lease.TTL <= 0 {
		t.Errorf("the lease lasts %v, %d s remain", ttl, lease.TTL)
	}
}

// TestSnapshotTargetBad leaves no files behind and does not touch what is there.
func TestSnapshotTargetBad(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there.db")
	must(t, os.WriteFile(there, []byte("mine"), 0o600))
	for _, file := range []string{there, dir} {
		if _, err := upstream.CreateSnapshot(file); !errors.Is(err, upstream.ErrExists) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := upstream.CreateSnapshot(filepath.Join(dir, "none", "a.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	log, p := filled(t), providers(t, "testdata/encryption.yaml")
	ex := newExport(t, log, p)
	must(t, ex.Survey(t.Context()))
	to, err := upstream.CreateSnapshot(filepath.Join(dir, "new.db"))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ex.Progress = func(int64, int64) { cancel() }
	if _, err := ex.Run(ctx, to); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	files, err := os.ReadDir(dir)
	must(t, err)
	content, err := os.ReadFile(there)
	must(t, err)
	if len(files) != 1 || string(content) != "mine" {
		t.Errorf("files %v, %q", files, content)
	}
}
