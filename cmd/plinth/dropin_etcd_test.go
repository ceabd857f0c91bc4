package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEtcdDropInFlags has the argument lists that tests start etcd with.
func TestEtcdDropInFlags(t *testing.T) {
	type obeyed struct {
		name, dataDir, listen, advertise string
		unsafe, version                  bool
	}
	for name, tt := range map[string]struct {
		args    []string
		want    obeyed
		ignored string
	}{
		"none": {nil, obeyed{name: "default", listen: "http://localhost:2379"}, ""},
		"envtest": {
			[]string{"--advertise-client-urls=http://127.0.0.1:1", "--data-dir=/d", "--listen-client-urls=http://127.0.0.1:1", "--listen-peer-urls=http://127.0.0.1:2", "--unsafe-no-fsync=true"},
			obeyed{name: "default", dataDir: "/d", listen: "http://127.0.0.1:1", advertise: "http://127.0.0.1:1", unsafe: true},
			"--listen-peer-urls",
		},
		"jenvtest": {
			jenvtestEtcd("/d", "/w", "1", "2"),
			obeyed{name: "default", dataDir: "/d", listen: "http://0.0.0.0:1", advertise: "http://0.0.0.0:1"},
			"--wal-dir --initial-cluster --initial-advertise-peer-urls --listen-peer-urls",
		},
		"kwokctl": {
			kwokctlEtcd("/d", "1", "2"),
			obeyed{name: "node0", dataDir: "/d", listen: "http://0.0.0.0:1", advertise: "http://0.0.0.0:1"},
			"--initial-advertise-peer-urls --listen-peer-urls --initial-cluster",
		},
		"one dash, without values": {
			[]string{"-unsafe-no-fsync", "-pre-vote", "--enable-pprof=false", "-version", "--log-format=json"},
			obeyed{name: "default", listen: "http://localhost:2379", unsafe: true, version: true},
			"--pre-vote --enable-pprof --log-format",
		},
	} {
		o := newEtcdDropInOptions()
		err := o.flags().Parse(tt.args)
		if ignored := strings.Join(o.ignored, " "); err != nil || ignored != tt.ignored {
			t.Errorf("%s: %v, ignored %s; want %s", name, err, ignored, tt.ignored)
		}
		got := obeyed{o.server.Name, o.dataDir, strings.Join(o.listen, ","), strings.Join(o.advertise, ","), o.unsafe, o.version}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestEtcdDropInBadFlags(t *testing.T) {
	taken := t.TempDir()
	must(t, os.Mkdir(filepath.Join(taken, "member"), 0o700))
	for args, want := range map[string]string{
		"--frobnicate":         "flag provided but not defined: -frobnicate; see etcd --help",
		"--data-dir":           "flag needs an argument: -data-dir",
		"--unsafe-no-fsync=si": `invalid boolean value "si"`,
		"member":               `unexpected "member"`,
		"--listen-client-urls=http://127.0.0.1:0 --data-dir=" + taken: "it has the data of another etcd, which plinth cannot read",
		"--listen-client-urls=http://127.0.0.1:0 --data-dir=what?":    "write a path without a question mark",
		"--data-dir=x --listen-client-urls=https://127.0.0.1:0":       `--listen-client-urls https://127.0.0.1:0: TLS needs --cert-file and --key-file, or --auto-tls`,
		"--data-dir=x --listen-client-urls=127.0.0.1:0":               `--listen-client-urls "127.0.0.1:0": write http://HOST:PORT`,
		"--data-dir=x --listen-client-urls=unix://":                   `--listen-client-urls "unix://": write http://HOST:PORT`,
	} {
		t.Run(args, func(t *testing.T) {
			var stderr bytes.Buffer
			cmd := newEtcdDropIn()
			args := strings.ReplaceAll(args, "--data-dir=x", "--data-dir="+t.TempDir())
			code := runProgram(cmd, strings.Fields(args), io.Discard, &stderr)
			last := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			if line := last[len(last)-1]; code != 2 || !strings.HasPrefix(line, "etcd: ") || !strings.Contains(line, want) {
				t.Errorf("exit code %d: %s; want %s", code, &stderr, want)
			}
		})
	}
}

// TestEtcdDropInVersion reads the version as programs do.
func TestEtcdDropInVersion(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := runProgram(newEtcdDropIn(), []string{"--version"}, &stdout, &stderr)
	lines := regexp.MustCompile(`^etcd Version: 3\.7\.\d+\nGit SHA: \w+\nGo Version: go1\S*\nGo OS/Arch: \w+/\w+\nplinth Version: \S+\n$`)
	if code != 0 || !lines.Match(stdout.Bytes()) || stderr.Len() > 0 {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
}

// TestEtcdDropInEnv sets flags by etcd's variables, over which the command line wins.
func TestEtcdDropInEnv(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{
		"ETCD_VERSION": "3.7.3", // which images have; it must not be --version
		"ETCD_NAME":    "of-etcd", "ETCD_DATA_DIR": filepath.Join(dir, "of-variable"), "ETCD_INITIAL_CLUSTER": "a=http://h:1", "ETCD_FROBNICATE": "1",
		"ETCD_LISTEN_CLIENT_URLS": "http://127.0.0.1:0", "ETCD_MAX_TXN_OPS": "0",
		"PLINTH_NAME": "of-plinth",
	} {
		t.Setenv(name, value)
	}
	run := func(args ...string) string {
		var stderr bytes.Buffer
		if code := runProgram(newEtcdDropIn(), append([]string{}, args...), io.Discard, &stderr); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
		return stderr.String()
	}
	if text := run(); !strings.Contains(text, "etcd: ETCD_MAX_TXN_OPS: 0: write a number from 1") {
		t.Errorf("a variable out of range: %s", text)
	}
	if text := run("-max-txn-ops=-1"); !strings.Contains(text, "etcd: --max-txn-ops: -1: write a number from 1") {
		t.Errorf("the command line does not win: %s", text)
	}
	t.Setenv("ETCD_MAX_TXN_OPS", "many")
	if text := run(); !strings.Contains(text, `etcd: ETCD_MAX_TXN_OPS: "many": write a whole number`) {
		t.Errorf("no number: %s", text)
	}
	// What is refused last, after all flags have been read.
	must(t, os.MkdirAll(filepath.Join(dir, "of-variable", "member"), 0o700))
	text := run("--max-txn-ops=1")
	for _, want := range []string{
		"ETCD_DATA_DIR " + filepath.Join(dir, "of-variable") + ": it has the data of another etcd",
		"these flags have no effect on plinth flags=ETCD_INITIAL_CLUSTER",
		"these variables have no effect on plinth; see etcd --help variables=ETCD_FROBNICATE",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s; want %s", text, want)
		}
	}
	must(t, os.MkdirAll(filepath.Join(dir, "of-etcd.etcd", "member"), 0o700))
	t.Chdir(dir)
	t.Setenv("ETCD_DATA_DIR", "")
	if text := run("--max-txn-ops=1"); !strings.Contains(text, filepath.Join(dir, "of-etcd.etcd")+": it has the data of another etcd") {
		t.Errorf("the directory of a name in a variable: %s", text)
	}
}
