package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// etcdProcess is a plinth etcd that runs.
type etcdProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	line   string   // that it has printed
	urls   []string // in that line
	ended  bool
}

// startEtcd starts plinth etcd on a free port, unless args say otherwise, and returns when it serves.
func startEtcd(t *testing.T, dir string, args ...string) *etcdProcess {
	t.Helper()
	cmd, stderr := plinth(t, []string{"PLINTH_LISTEN_CLIENT_URLS=http://127.0.0.1:0"}, append([]string{"etcd"}, args...)...)
	cmd.Dir = dir
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &etcdProcess{t: t, cmd: cmd, stderr: stderr}
	t.Cleanup(p.stop)
	p.line, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		p.ended = true
		t.Fatalf("%v: %s", err, stderr)
	}
	urls, _, _ := strings.Cut(strings.TrimPrefix(p.line, "export ETCDCTL_ENDPOINTS="), " ")
	p.urls = strings.Split(urls, ",")
	return p
}

// stop ends it as systemd does. It must exit with 0.
func (p *etcdProcess) stop() {
	p.t.Helper()
	if p.ended {
		return
	}
	p.ended = true
	must(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("%v: %s", err, p.stderr)
	}
}

func (p *etcdProcess) client(config *tls.Config) *clientv3.Client {
	p.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: p.urls, TLS: config, DialTimeout: patience})
	must(p.t, err)
	p.t.Cleanup(func() { c.Close() })
	return c
}

func withPatience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestEtcdCommand writes keys on each dialect, which are there after a restart, and to all members.
// plinth serve refuses the database, and plinth etcd one of plinth serve.
func TestEtcdCommand(t *testing.T) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		ctx, dir, dsn := withPatience(t), t.TempDir(), d.Fresh(t)
		first := startEtcd(t, dir, "--dsn="+dsn, "--name=one", "--initial-cluster=one=http://127.0.0.1:2380", "--heartbeat-interval=100", "--trusted-ca-file=ca.crt")
		put, err := first.client(nil).Put(ctx, "a", "1")
		must(t, err)
		if put.Header.Revision != 2 {
			t.Errorf("the first revision is %d", put.Header.Revision)
		}
		if d.Servers > 1 {
			second := startEtcd(t, dir, "--dsn="+dsn, "--name=two")
			got, err := second.client(nil).Get(ctx, "a")
			must(t, err)
			if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "1" || got.Header.Revision != 2 {
				t.Errorf("the second member has %v", got)
			}
			second.stop()
		}
		first.stop()
		if !strings.Contains(first.stderr.String(), "these flags have no effect on plinth flags=--initial-cluster,--heartbeat-interval") {
			t.Errorf("no warning of flags: %s", first.stderr)
		}
		if !strings.Contains(first.stderr.String(), "clients need no certificate at a URL that is not https:// or unixs://") {
			t.Errorf("no warning of plaintext: %s", first.stderr)
		}
		again := startEtcd(t, dir, "--dsn="+dsn)
		got, err := again.client(nil).Get(ctx, "a")
		must(t, err)
		if len(got.Kvs) != 1 || got.Kvs[0].ModRevision != 2 {
			t.Errorf("after a restart: %v", got)
		}
		again.stop()
		read, stderr := plinth(t, nil, "status", "--dsn="+dsn)
		summary, err := read.Output()
		if err != nil || !regexp.MustCompile(`\nKeys +1\nRows +1, with history\nRevision +2; history begins at 0\n`).Match(summary) {
			t.Errorf("plinth status: %v: %s%s", err, summary, stderr)
		}
		code, out := runPlinth(t, "serve", "--listen=127.0.0.1:0", "--dsn="+dsn)
		if text := complaint(out); code == 0 || strings.Count(text, "\n") != 1 {
			t.Errorf("plinth serve: exit code %d: %s", code, out)
		}
		other := d.Fresh(t)
		must(t, openedLog(t, other).Close())
		code, out = runPlinth(t, "etcd", "--listen-client-urls=http://127.0.0.1:0", "--dsn="+other)
		if text := complaint(out); code == 0 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "--dsn") {
			t.Errorf("plinth etcd: exit code %d: %s", code, out)
		}
	})
}

// TestEtcdSetBack exchanges a database for an older one: revisions go on above what was served, and a
// watch from before hears that it is compacted. A database that is empty is refused.
func TestEtcdSetBack(t *testing.T) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		ctx, dir, dsn := withPatience(t), t.TempDir(), d.Fresh(t)
		first := startEtcd(t, dir, "--dsn="+dsn)
		put, err := first.client(nil).Put(ctx, "a", "1")
		must(t, err)
		first.stop()
		path := filepath.Join(dir, "plinth-data", "etcd-revision")
		text, err := os.ReadFile(path)
		must(t, err)
		var cluster string
		var revision int64
		if _, err := fmt.Sscanf(string(text), "%s %d", &cluster, &revision); err != nil || revision != put.Header.Revision {
			t.Fatalf("the file has %q, %v; want revision %d", text, err, put.Header.Revision)
		}
		const served = 500 // as if the backup were older than the file
		must(t, os.WriteFile(path, fmt.Appendf(nil, "%s %d\n", cluster, served), 0o600))

		restored := startEtcd(t, dir, "--dsn="+dsn)
		c := restored.client(nil)
		got, err := c.Get(ctx, "a")
		must(t, err)
		if len(got.Kvs) != 1 || got.Header.Revision <= served {
			t.Errorf("restored: %v", got)
		}
		for _, from := range []int64{put.Header.Revision, served, served + 1} {
			if w := <-c.Watch(ctx, "a", clientv3.WithRev(from)); w.CompactRevision <= served {
				t.Errorf("a watch from revision %d got %+v", from, w)
			}
		}
		again, err := c.Put(ctx, "a", "2")
		must(t, err)
		if again.Header.Revision != got.Header.Revision+1 {
			t.Errorf("after revision %d comes %d", got.Header.Revision, again.Header.Revision)
		}
		restored.stop()
		if text := restored.stderr.String(); !strings.Contains(text, "the database is older than what was served before") {
			t.Errorf("no warning: %s", text)
		}

		other := d.Fresh(t)
		for range 2 { // the first leaves nothing behind
			code, out := runPlinth(t, "etcd", "--listen-client-urls=http://127.0.0.1:0", "--data-dir="+filepath.Join(dir, "plinth-data"), "--dsn="+other)
			if text := complaint(out); code != 2 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "now there is no plinth database") || !strings.Contains(text, "--new-database") {
				t.Errorf("an empty database: exit code %d: %s", code, out)
			}
		}
		startEtcd(t, dir, "--dsn="+other, "--new-database").stop()
	})
}

// TestEtcdMalformedRevision refuses to start beside a file that would not notice a database that was set back.
func TestEtcdMalformedRevision(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "etcd-revision"), nil, 0o600))
	code, out := runPlinth(t, "etcd", "--listen-client-urls=http://127.0.0.1:0", "--data-dir="+dir)
	if text := complaint(out); code != 1 || strings.Count(text, "\n") != 1 || !strings.Contains(text, filepath.Join(dir, "etcd-revision")+" is empty; write the line CLUSTER REVISION into it") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd.db")); !os.IsNotExist(err) {
		t.Errorf("a database was made: %v", err)
	}
}

// TestEtcdTLS has a server with a certificate of its own, and one that asks clients for theirs.
func TestEtcdTLS(t *testing.T) {
	t.Parallel()
	ctx, dir := withPatience(t), t.TempDir()
	auto := startEtcd(t, dir, "--auto-tls", "--listen-client-urls=https://127.0.0.1:0,unix://"+filepath.Join(dir, "s")+",unixs://etcd.sock", "--listen-metrics-urls=http://127.0.0.1:0")
	_, file, _ := strings.Cut(strings.Fields(auto.line)[2], "ETCDCTL_CACERT=")
	ca, err := os.ReadFile(file)
	must(t, err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	all := auto.urls
	for _, url := range []string{"unixs://" + filepath.Join(dir, "etcd.sock"), all[0]} {
		auto.urls = []string{url}
		_, err = auto.client(&tls.Config{RootCAs: trusted}).Put(ctx, "a", "1")
		must(t, err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	resp, err := client.Get(auto.urls[0] + "/version")
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(body), `"etcdserver":"3.7`) {
		t.Errorf("/version: %s, %v", body, err)
	}
	auto.stop()

	signed(t, dir, "ca", x509.Certificate{Subject: subjectOf("ca"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, "")
	signed(t, dir, "server", x509.Certificate{Subject: subjectOf("server"), IPAddresses: local, DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "ca")
	signed(t, dir, "client", x509.Certificate{Subject: subjectOf("client"), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, "ca")
	path := func(name string) string { return filepath.Join(dir, name) }
	mutual := startEtcd(t, dir, "--listen-client-urls=https://127.0.0.1:0", "--cert-file="+path("server.crt"), "--key-file="+path("server.key"), "--trusted-ca-file="+path("ca.crt"), "--client-cert-auth")
	ca, err = os.ReadFile(path("ca.crt"))
	must(t, err)
	trusted = x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(path("client.crt"), path("client.key"))
	must(t, err)
	got, err := mutual.client(&tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{pair}}).Get(ctx, "a")
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("with a certificate: %v, %v", got, err)
	}
	client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	if resp, err := client.Get(mutual.urls[0] + "/version"); err == nil {
		resp.Body.Close()
		t.Error("a client without a certificate is let in")
	}

	// Authorities that are replaced count from the next connection on.
	signed(t, dir, "other", x509.Certificate{Subject: subjectOf("other"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, "")
	must(t, os.Rename(path("other.crt"), path("ca.crt")))
	soon(t, "a client of an authority that is gone is refused", func() bool {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{pair}}}}
		resp, err := client.Get(mutual.urls[0] + "/version")
		if err == nil {
			resp.Body.Close()
		}
		return err != nil
	})
	mutual.stop()
	if text := mutual.stderr.String(); !strings.Contains(text, `a client has failed in the TLS handshake client=127.0.0.1:`) || !strings.Contains(text, "tls: client didn't provide a certificate") {
		t.Errorf("no word of the client without a certificate: %s", text)
	}

	pages := startEtcd(t, dir, "--listen-metrics-urls=unixs://m", "--cert-file="+path("server.crt"), "--key-file="+path("server.key"), "--trusted-ca-file="+path("ca.crt"))
	refused, err := tls.Dial("unix", path("m"), &tls.Config{RootCAs: trusted, ServerName: "localhost"})
	if err == nil {
		_, err = refused.Read(make([]byte, 1)) // where a client of TLS 1.3 hears of it
		refused.Close()
	}
	if err == nil {
		t.Error("a client without a certificate gets metrics")
	}
	pages.stop()
	if text := pages.stderr.String(); !strings.Contains(text, "a client has failed in the TLS handshake") {
		t.Errorf("no word of the client of the metrics: %s", text)
	}
}

// TestEtcdEnvironment pastes the printed line into a shell, of servers that ask clients for a certificate.
func TestEtcdEnvironment(t *testing.T) {
	t.Parallel()
	ctx, dir := withPatience(t), t.TempDir()
	pasted := func(p *etcdProcess) map[string]string {
		out, err := exec.Command("sh", "-c", p.line+"env").Output()
		must(t, err)
		set := map[string]string{}
		for line := range strings.Lines(string(out)) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), "="); strings.HasPrefix(name, "ETCDCTL_") {
				set[name] = value
			}
		}
		return set
	}
	own := startEtcd(t, dir, "--listen-client-urls=https://127.0.0.1:0", "--data-dir=a b", "--auto-tls", "--trusted-ca-file=a b/etcd-pki/ca.crt")
	set := pasted(own)
	pair, err := tls.LoadX509KeyPair(set["ETCDCTL_CERT"], set["ETCDCTL_KEY"])
	must(t, err)
	ca, err := os.ReadFile(set["ETCDCTL_CACERT"])
	must(t, err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	_, err = own.client(&tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{pair}}).Get(ctx, "a")
	must(t, err)

	signed(t, dir, "other", x509.Certificate{Subject: subjectOf("other"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, "")
	others := startEtcd(t, dir, "--listen-client-urls=https://127.0.0.1:0", "--auto-tls", "--trusted-ca-file=other.crt")
	if set := pasted(others); set["ETCDCTL_CERT"] != "" || set["ETCDCTL_KEY"] != "" || set["ETCDCTL_CACERT"] == "" {
		t.Errorf("with clients of another authority: %v", set)
	}
}

// TestEtcdStop stops a server whose clients have watches, soon and with exit code 0.
func TestEtcdStop(t *testing.T) {
	t.Parallel()
	ctx := withPatience(t)
	p := startEtcd(t, t.TempDir())
	c := p.client(nil)
	events := c.Watch(ctx, "a")
	_, err := c.Put(ctx, "a", "1")
	must(t, err)
	if e := <-events; len(e.Events) != 1 {
		t.Errorf("events: %v", e)
	}
	begun := time.Now()
	p.stop()
	if took := time.Since(begun); took > 20*time.Second { // --shutdown-timeout is 30s
		t.Errorf("the stop took %v", took)
	}
}

func TestEtcdBadFlags(t *testing.T) {
	t.Parallel()
	member := t.TempDir()
	must(t, os.Mkdir(filepath.Join(member, "member"), 0o700))
	for args, want := range map[string]string{
		"--listen-client-urls=http://0.0.0.0:0":                          "other machines would reach it without TLS",
		"--listen-client-urls=https://127.0.0.1:0":                       "TLS needs --cert-file and --key-file, or --auto-tls",
		"--listen-client-urls=127.0.0.1:0":                               `--listen-client-urls "127.0.0.1:0": write http://HOST:PORT`,
		"--listen-client-urls=":                                          "--listen-client-urls is empty",
		"--cert-file=a":                                                  "--cert-file needs --key-file",
		"--key-file=a":                                                   "--key-file needs --cert-file",
		"--name=":                                                        "--name is empty; write a name",
		"--advertise-client-urls=nonsense":                               `--advertise-client-urls "nonsense": write http://HOST:PORT`,
		"--listen-client-urls=http://127.0.0.1:65536":                    "write a port up to 65535",
		"--quota-backend-bytes=2GB":                                      `--quota-backend-bytes: "2GB": write a number of bytes, or one with KiB, MiB or GiB`,
		"--config-file=etcd.yaml":                                        "plinth has no --config-file; leave it out, and write what is in the file as flags",
		"--client-crl-file=a":                                            "plinth has no --client-crl-file; leave it out; certificates cannot be revoked",
		"--auto-tls --cert-file=a --key-file=b":                          "give one of the two",
		"--client-cert-auth":                                             "--client-cert-auth needs --trusted-ca-file",
		"--listen-client-urls=unixs://s --cert-file=no --key-file=no":    "--cert-file and --key-file: open no: no such file",
		"--listen-client-urls=unixs://s --auto-tls --trusted-ca-file=x":  "--trusted-ca-file: open x: no such file",
		"--tls-min-version=TLS1.0":                                       "write TLS1.2 or TLS1.3",
		"--tls-min-version=TLS1.3 --tls-max-version=TLS1.2":              "--tls-max-version TLS1.2 is below",
		"--cipher-suites=nope":                                           "--cipher-suites: ",
		"--max-txn-ops=0":                                                "--max-txn-ops: 0: write a number from 1",
		"--max-request-bytes=-1":                                         "--max-request-bytes: -1: write a number from 1",
		"--max-concurrent-streams=0":                                     "--max-concurrent-streams: 0: write a number above 0",
		"--grpc-keepalive-timeout=-1s":                                   "--grpc-keepalive-timeout: -1s is negative",
		"--auto-compaction-mode=weekly":                                  "write periodic or revision",
		"--auto-compaction-retention=week":                               "write a duration such as 8h",
		"--auto-compaction-mode=revision --auto-compaction-retention=1h": "write a number of revisions",
		"--cache-bytes=much":                                             "write a number of bytes",
		"--log-level=loud":                                               "write debug, info, warn or error",
		"--host-whitelist=a":                                             "plinth has no --host-whitelist; leave it out; there is no JSON gateway",
		"--dsn=http://127.0.0.1:2379":                                    "--dsn: it is the URL of an etcd",
		"--endpoint=nats://h":                                            "--dsn: nats:// is a store of kine",
		"--dsn=sqlite://a.db --unsafe-no-fsync":                          "write durability=off in the DSN",
		"--listen-client-urls=http://127.0.0.1:0 --data-dir=" + member:   "it has the data of another etcd",
		"--listen-client-urls=http://127.0.0.1:0 --data-dir=what?":       "write a path without a question mark",
		"--frobnicate":                                                   "unknown flag --frobnicate",
		"import":                                                         "write where to read and where to write",
		"import --from-kine=http://h --dsn=sqlite://b.db":                "--from-kine: it is the URL of an etcd",
		"import --from-kine=sqlite://a.db --dsn=sqlite://a.db?_sync=1":   "it is kine's own file",
		"import --from-kine=sqlite://a.db --dsn=sqlite://:memory:":       "a database in memory is gone",
	} {
		code, out := runPlinth(t, append([]string{"etcd"}, strings.Fields(args)...)...)
		lines := strings.Split(strings.TrimSpace(complaint(out)), "\n")
		if last := lines[len(lines)-1]; code != 2 || !strings.HasPrefix(last, "plinth: ") || !strings.Contains(last, want) {
			t.Errorf("%s: exit code %d: %s; want %s", args, code, out, want)
		}
	}
}
