package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEtcdDropInFlags has the argument lists that tests start etcd with.
func TestEtcdDropInFlags(t *testing.T) {
	for name, tt := range map[string]struct {
		args    []string
		want    etcdDropIn
		ignored string
	}{
		"none": {nil, etcdDropIn{name: "default", clientURLs: "http://localhost:2379"}, ""},
		"envtest": {
			[]string{"--advertise-client-urls=http://127.0.0.1:1", "--data-dir=/d", "--listen-client-urls=http://127.0.0.1:1", "--listen-peer-urls=http://127.0.0.1:2", "--unsafe-no-fsync=true"},
			etcdDropIn{name: "default", dataDir: "/d", clientURLs: "http://127.0.0.1:1", unsafe: true},
			"--advertise-client-urls --listen-peer-urls",
		},
		"jenvtest": {
			jenvtestEtcd("/d", "/w", "1", "2"),
			etcdDropIn{name: "default", dataDir: "/d", clientURLs: "http://0.0.0.0:1"},
			"--wal-dir --advertise-client-urls --initial-cluster --initial-advertise-peer-urls --listen-peer-urls",
		},
		"kwokctl": {
			kwokctlEtcd("/d", "1", "2"),
			etcdDropIn{name: "node0", dataDir: "/d", clientURLs: "http://0.0.0.0:1"},
			"--auto-compaction-retention --quota-backend-bytes --initial-advertise-peer-urls --listen-peer-urls --advertise-client-urls --initial-cluster",
		},
		"one dash, without values": {[]string{"-unsafe-no-fsync", "-pre-vote", "--auto-tls=false", "-version"}, etcdDropIn{name: "default", clientURLs: "http://localhost:2379", unsafe: true, version: true}, "--pre-vote --auto-tls"},
	} {
		var o etcdDropIn
		err := o.flags().Parse(tt.args)
		if ignored := strings.Join(o.ignored, " "); err != nil || ignored != tt.ignored {
			t.Errorf("%s: %v, ignored %s; want %s", name, err, ignored, tt.ignored)
		}
		if o.ignored = nil; !slices.Equal([]any{o.name, o.dataDir, o.clientURLs, o.unsafe, o.version}, []any{tt.want.name, tt.want.dataDir, tt.want.clientURLs, tt.want.unsafe, tt.want.version}) {
			t.Errorf("%s: %+v, want %+v", name, o, tt.want)
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
		"--data-dir=" + taken:  "it has the data of another etcd, which plinth cannot read",
		"--data-dir=what?":     "write a path without a question mark",
		"--data-dir=x --listen-client-urls=https://127.0.0.1:0": `--listen-client-urls "https://127.0.0.1:0": write http://HOST:PORT`,
		"--data-dir=x --listen-client-urls=127.0.0.1:0":         `--listen-client-urls "127.0.0.1:0": write http://HOST:PORT`,
		"--data-dir=x --listen-client-urls=unix://a":            `--listen-client-urls "unix://a": write http://HOST:PORT`,
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
