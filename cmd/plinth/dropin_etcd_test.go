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
	lines := regexp.MustCompile(`^etcd Version: 3\.6\.\d+\nGit SHA: \w+\nGo Version: go1\S*\nGo OS/Arch: \w+/\w+\nplinth Version: \S+\n$`)
	if code != 0 || !lines.Match(stdout.Bytes()) || stderr.Len() > 0 {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
}
