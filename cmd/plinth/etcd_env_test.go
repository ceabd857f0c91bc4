package main

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// TestEtcdEnv sets flags by etcd's variables, over which plinth's and the command line win.
func TestEtcdEnv(t *testing.T) {
	for name, value := range map[string]string{
		"ETCD_NAME": "of-etcd", "ETCD_DATA_DIR": "of-etcd", "ETCD_LISTEN_CLIENT_URLS": "http://127.0.0.1:1",
		"ETCD_INITIAL_CLUSTER": "a=http://h:1", "ETCD_DSN": "sqlite://a.db", "ETCD_V": "3",
		"ETCD_EXPERIMENTAL_WATCH_PROGRESS_NOTIFY_INTERVAL": "1m", "ETCD_QUOTA_BACKEND_BYTES": "",
		"PLINTH_DATA_DIR": "of-plinth", "PLINTH_ENDPOINT": "sqlite://of-variable.db",
	} {
		t.Setenv(name, value)
	}
	cmd := newEtcd()
	cmd.SetErr(io.Discard)
	o := cmd.Flags()
	must(t, o.Parse([]string{"--listen-client-urls=unix://of-flag", "--watch-progress-notify-interval=2m", "--dsn=sqlite://of-flag.db"}))
	must(t, applyEnv(cmd))
	must(t, applyEtcdEnv(o))
	for flag, want := range map[string]string{
		"name": "of-etcd", "data-dir": "of-plinth", "listen-client-urls": "[unix://of-flag]", "dsn": "sqlite://of-flag.db", "v": "0",
		"watch-progress-notify-interval": "2m0s", "quota-backend-bytes": "0",
	} {
		if got := o.Lookup(flag).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", flag, got, want)
		}
	}
	if got := source(o.Lookup("name")); got != "ETCD_NAME" {
		t.Errorf("the name is said to come from %s", got)
	}
}

// TestEtcdEnvTold names variables of etcd that are wrong, or have no effect.
func TestEtcdEnvTold(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"ETCD_MAX_TXN_OPS=many":         `ETCD_MAX_TXN_OPS: "many": write a whole number`,
		"ETCD_MAX_TXN_OPS=0":            "ETCD_MAX_TXN_OPS: 0: write a number from 1",
		"ETCD_CONFIG_FILE=etcd.yaml":    "plinth has no ETCD_CONFIG_FILE; leave it out",
		"ETCD_INITIAL_CLUSTER=a=http:1": "these flags have no effect on plinth flags=ETCD_INITIAL_CLUSTER",
		"ETCD_FROBNICATE=1":             "these variables have no effect on plinth; see plinth etcd --help variables=ETCD_FROBNICATE",
		"PLINTH_FROBNICATE=1":           "this variable is not known and has no effect; see plinth etcd --help variable=PLINTH_FROBNICATE",
		"ETCD_UNSAFE_NO_FSYNC=true":     "--unsafe-no-fsync: writes do not wait for the disk",
	} {
		cmd, stderr := plinth(t, []string{variable}, "etcd", "--listen-client-urls=unix:///nowhere/at/all")
		if cmd.Run() == nil || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: %s; want %s", variable, stderr, want)
		}
	}
	var out bytes.Buffer
	warnOfEtcdVariables(newEtcd().Flags(), []string{
		"ETCD_NAME=a", "ETCD_INITIAL_CLUSTER=a", "ETCD_VERSION=3.6", "ETCD_SERVICE_HOST=10.0.0.1", "ETCD_PORT=tcp://10.0.0.1:2379", "ETCDCTL_API=3",
		"ETCD_DSN=a", "ETCD_LOG_FORMAT=json",
	}, "etcd --help", slog.New(slog.NewTextHandler(&out, nil)))
	if !strings.HasSuffix(out.String(), "variables=ETCD_DSN,ETCD_LOG_FORMAT\n") {
		t.Errorf("printed %s", &out)
	}
}
