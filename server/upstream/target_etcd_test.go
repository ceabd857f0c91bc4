package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func toEtcd(t testing.TB, address string) upstream.Target {
	t.Helper()
	to, done, err := upstream.ToEtcd(t.Context(), upstream.Etcd{URLs: []string{"http://" + address}}, layout(t))
	must(t, err)
	t.Cleanup(func() { done() })
	return to
}

// keysOf returns the keys below the prefix.
func keysOf(t *testing.T, c *clientv3.Client) (keys []string) {
	t.Helper()
	got, err := c.Get(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	must(t, err)
	for _, kv := range got.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// TestEtcdTarget exports to an etcd that runs what a file would have.
func TestEtcdTarget(t *testing.T) {
	address := etcdtest.StartAt(t)
	c, p, log := dialEtcd(t, address), providers(t, "testdata/encryption.yaml"), filled(t)
	_, err := c.Put(t.Context(), "/elsewhere", "1") // is no key below the prefix
	must(t, err)
	report, file := give(t, log, toEtcd(t, address), p), memory{}
	give(t, log, &file, p)
	got, err := c.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	must(t, err)
	if got.Header.Revision != report.EtcdRevision || got.Count != report.Objects || len(file.items) != int(got.Count) {
		t.Errorf("revision %d, %d keys; want %v", got.Header.Revision, got.Count, report)
	}
	for _, kv := range got.Kvs {
		value, _ := opened(t, upstream.Pair{Key: string(kv.Key), Value: kv.Value}, p)
		if want, _ := opened(t, file.items[string(kv.Key)].Pair, p); value != want {
			t.Errorf("%s is %q, want %q", kv.Key, value, want)
		}
	}
	checkLease(t, c)
	var notEmpty *upstream.NotEmptyError
	if _, _, err := upstream.ToEtcd(t.Context(), upstream.Etcd{URLs: []string{"http://" + address}}, layout(t)); !errors.As(err, &notEmpty) || notEmpty.Keys != report.Objects {
		t.Errorf("a second export: %v", err)
	}
}

// large returns a log with n ConfigMaps of a size.
func large(t *testing.T, n, size int) changelog.Log {
	t.Helper()
	log := openLog(t, logtest.SQLite(t))
	for i := range n {
		write(t, log, fmt.Sprintf("/registry/core/configmaps/n/c%03d", i),
			fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%03d","namespace":"n"},"data":{"a":%q}}`, i, strings.Repeat("x", size)))
	}
	write(t, log, "/registry/core/events/a/e", `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"a"}}`)
	return log
}

// TestEtcdTargetFails has etcds that do not take everything: nothing of the export is left there.
func TestEtcdTargetFails(t *testing.T) {
	p := providers(t, "")
	for name, c := range map[string]struct {
		log   changelog.Log
		flags []string
		want  string
	}{
		// An etcd learns how large it is when it commits, which it else does every tenth of a second.
		"full":  {large(t, 400, 20_000), []string{"--quota-backend-bytes=4000000", "--backend-batch-limit=1"}, "database space exceeded: raise --quota-backend-bytes"},
		"large": {large(t, 3, 900_000), []string{"--max-request-bytes=500000"}, "request is too large: raise --max-request-bytes"},
	} {
		address := etcdtest.StartAt(t, c.flags...)
		ex := newExport(t, c.log, p)
		must(t, ex.Survey(t.Context()))
		if _, err := ex.Run(t.Context(), toEtcd(t, address)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "could not be removed") {
			t.Errorf("%s: %v", name, err)
		}
		checkNothingLeft(t, name, dialEtcd(t, address))
	}
}

// TestEtcdTargetInterrupted ends an export in its middle. If the etcd is reached, nothing is left there;
// if it is not, the error says what is left and what to do.
func TestEtcdTargetInterrupted(t *testing.T) {
	for _, lost := range []bool{false, true} {
		address := etcdtest.StartAt(t)
		way, cut := through(t, address)
		ex := newExport(t, large(t, 600, 10), providers(t, ""))
		must(t, ex.Survey(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		ex.Progress = func(objects, _ int64) {
			if objects > 100 {
				if lost {
					cut()
				}
				cancel()
			}
		}
		_, err := ex.Run(ctx, toEtcd(t, way))
		c := dialEtcd(t, address)
		switch {
		case !errors.Is(err, context.Canceled) || errors.Is(err, upstream.ErrLeft) != lost:
			t.Errorf("lost %v: %v", lost, err)
		case !lost:
			checkNothingLeft(t, "interrupted", c)
		case len(keysOf(t, c)) == 0 || !strings.Contains(err.Error(), "remove it: etcdctl del --prefix /registry/"):
			t.Errorf("%d keys are left: %v", len(keysOf(t, c)), err)
		}
	}
}

// through returns an address that connects to another, and what ends all of its connections.
func through(t *testing.T, to string) (address string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cut := context.WithCancel(t.Context())
	context.AfterFunc(ctx, func() { l.Close() })
	t.Cleanup(cut)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			context.AfterFunc(ctx, func() { in.Close(); out.Close() })
			go io.Copy(in, out)
			go io.Copy(out, in)
		}
	}()
	return l.Addr().String(), cut
}

func checkNothingLeft(t *testing.T, name string, c *clientv3.Client) {
	t.Helper()
	if keys := keysOf(t, c); len(keys) > 0 {
		t.Errorf("%s: left are %q", name, keys)
	}
	leases, err := c.Leases(t.Context())
	must(t, err)
	if len(leases.Leases) > 0 {
		t.Errorf("%s: leases are left: %v", name, leases.Leases)
	}
}

// TestEtcdTargetShared has somebody else write to the etcd during the export: his keys stay.
func TestEtcdTargetShared(t *testing.T) {
	address := etcdtest.StartAt(t)
	c, log := dialEtcd(t, address), large(t, 600, 10)
	to, ex := toEtcd(t, address), newExport(t, log, providers(t, ""))
	must(t, ex.Survey(t.Context()))
	ex.Progress = func(int64, int64) { // after the first page
		for _, key := range []string{"c003", "c599"} { // one that is there, and one that is to come
			_, err := c.Put(t.Context(), "/registry/configmaps/n/"+key, "other")
			must(t, err)
		}
	}
	if _, err := ex.Run(t.Context(), to); err == nil || !strings.Contains(err.Error(), "somebody else has written") {
		t.Errorf("%v", err)
	}
	if keys := keysOf(t, c); strings.Join(keys, " ") != "/registry/configmaps/n/c003 /registry/configmaps/n/c599" {
		t.Errorf("left are %q", keys)
	}
}
