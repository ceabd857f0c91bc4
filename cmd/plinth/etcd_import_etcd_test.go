package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// TestEtcdImportEtcd takes the keys of an etcd that runs, and of its snapshot, on each dialect. Clients see the
// same keys, the past since the compaction, the changes, and the leases, and writes go on above.
func TestEtcdImportEtcd(t *testing.T) {
	t.Parallel()
	url := "http://" + etcdtest.StartAt(t) // which may have to be built first
	ctx := withPatience(t)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	must(t, err)
	defer c.Close()
	put := func(key, value string, o ...clientv3.OpOption) int64 {
		t.Helper()
		done, err := c.Put(ctx, key, value, o...)
		must(t, err)
		return done.Header.Revision
	}
	put("/a", "1")
	put("/gone", "1")
	compacted := put("/a", "2")
	_, err = c.Compact(ctx, compacted, clientv3.WithCompactPhysical())
	must(t, err)
	lease, err := c.Grant(ctx, 3600)
	must(t, err)
	past := put("/leased", "1", clientv3.WithLease(lease.ID))
	_, err = c.Txn(ctx).Then(clientv3.OpPut("/a", "3"), clientv3.OpPut("/b", ""), clientv3.OpDelete("/gone")).Commit()
	must(t, err)
	newest := put("/b", "2")
	want, err := c.Get(ctx, "/", clientv3.WithPrefix())
	must(t, err)
	wantPast, err := c.Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(past))
	must(t, err)
	file := filepath.Join(t.TempDir(), "snapshot.db")
	snapshot, err := c.Snapshot(ctx)
	must(t, err)
	to, err := os.Create(file)
	must(t, err)
	_, err = to.ReadFrom(snapshot)
	must(t, err)
	must(t, to.Close())
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		ctx, from := withPatience(t), url
		if d.Name == "sqlite" {
			from = file
		}
		dsn := d.Fresh(t)
		code, out := printed(t, "etcd", "import", "--from-etcd="+from, "--dsn="+dsn)
		if code != 0 || !strings.HasPrefix(out, "imported 3 keys in ") {
			t.Fatalf("exit code %d: %s", code, out)
		}
		p := startEtcd(t, t.TempDir(), "--dsn="+dsn).client(nil)
		got, err := p.Get(ctx, "/", clientv3.WithPrefix())
		must(t, err)
		if diff := cmp.Diff(seen(want), seen(got)); diff != "" || got.Header.Revision != newest {
			t.Errorf("revision %d: %s", got.Header.Revision, diff)
		}
		got, err = p.Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(past))
		must(t, err)
		if diff := cmp.Diff(seen(wantPast), seen(got)); diff != "" {
			t.Errorf("the past: %s", diff)
		}
		if _, err := p.Get(ctx, "/a", clientv3.WithRev(compacted-1)); err == nil || !strings.Contains(err.Error(), "compacted") {
			t.Errorf("below the compaction: %v", err)
		}
		held, err := p.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
		must(t, err)
		if held.GrantedTTL != 3600 || len(held.Keys) != 1 {
			t.Errorf("the lease is %+v", held)
		}
		answer := <-p.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(past))
		must(t, answer.Err())
		if len(answer.Events) == 0 || answer.Events[0].Kv.ModRevision != past {
			t.Errorf("the watch begins with %+v, not at %d", answer.Events, past)
		}
		done, err := p.Put(ctx, "/new", "1")
		must(t, err)
		if done.Header.Revision != newest+1 {
			t.Errorf("the next revision is %d", done.Header.Revision)
		}
	})
}

// TestEtcdImportEtcdBad has mistakes that are one line, and make nothing.
func TestEtcdImportEtcdBad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := "--dsn=sqlite://" + dir + "/to.db"
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--from-etcd=http://127.0.0.1:1 " + to, "--from-etcd: http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; check that the etcd runs", 1},
		{"--from-etcd=" + dir + "/none.db " + to, "--from-etcd: ", 2},
		{"--from-etcd=127.0.0.1:2379 " + to, "write the URL of an etcd, such as http://127.0.0.1:2379", 2},
		{"--from-etcd=x --from-kine=sqlite://x " + to, "write one of them", 2},
		{"--from-etcd=x", "write the database: --dsn", 2},
		{"--from-etcd=x --dsn=sqlite://:memory:", "a database in memory is gone", 2},
		{to, "write where to read and where to write: --from-etcd URL", 2},
	} {
		code, out := runPlinth(t, append([]string{"etcd", "import"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s; want %s", c.args, code, out, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "to.db")); err == nil {
			t.Fatalf("%s: the target was made", c.args)
		}
	}
}
