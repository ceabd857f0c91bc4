package kine_test

import (
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
)

// TestDSN has the spellings of kine v0.17 and k3s, and what they are for plinth.
func TestDSN(t *testing.T) {
	for endpoint, want := range map[string]string{
		"sqlite://": "sqlite://./db/state.db",
		"sqlite://./db/state.db?_journal=WAL&cache=shared&_busy_timeout=30000":                                             "sqlite://./db/state.db",
		"sqlite:///a/b.db?_journal_mode=WAL&_busy_timeout=30000&_synchronous=NORMAL&_txlock=immediate&_stmt_cache_size=20": "sqlite:///a/b.db?durability=normal",
		"sqlite:///a/b.db?_sync=2&mode=rwc&_kine_disable_startup_vacuum":                                                   "sqlite:///a/b.db?durability=full",
		"sqlite:///a/b.db?durability=off&reserve=1MiB":                                                                     "sqlite:///a/b.db?durability=off&reserve=1MiB",
		"postgres://":                           "postgres://postgres:postgres@localhost/kubernetes",
		"postgres://u:p@h:5433/":                "postgres://u:p@h:5433/kubernetes",
		"postgres://u:p@h":                      "postgres://u:p@h/kubernetes",
		"postgresql://u:p@h/db?sslmode=disable": "postgres://u:p@h/db?sslmode=disable",
		"mysql://":                              "mysql://root@/kubernetes?socket=%2Fvar%2Frun%2Fmysqld%2Fmysqld.sock",
		"mysql://root@tcp(127.0.0.1)/":          "mysql://root@127.0.0.1:3306/kubernetes",
		"mysql://u:p@tcp(h:3307)/db":            "mysql://u:p@h:3307/db",
		"mysql://u:p@tcp([::1]:3307)/db":        "mysql://u:p@[::1]:3307/db",
		"mysql://u:a/b@c?d&e%f@tcp(h)/db":       "mysql://u:a%2Fb%40c%3Fd&e%25f@h:3306/db",
		"mysql://u:p@unix(/run/mysql.sock)/db":  "mysql://u:p@/db?socket=%2Frun%2Fmysql.sock",
		"mysql://u:p@/db":                       "mysql://u:p@127.0.0.1:3306/db",
		"mysql://u@tcp/db?tls=skip-verify":      "mysql://u@127.0.0.1:3306/db?tls=skip-verify",
		"mysql://u@tcp(h)/db?parseTime=true&charset=utf8mb4&timeout=3s": "mysql://u@h:3306/db?timeout=3s",
		"mysql://u:p@h:3306/db?tls=true":                                "mysql://u:p@h:3306/db?tls=true",
		"mysql://u:p@h":                                                 "mysql://u:p@h/kubernetes",
		"mariadb://u:p@tcp(h)/db":                                       "mysql://u:p@h:3306/db",
	} {
		got, err := kine.DSN(endpoint)
		if err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", endpoint, got, err, want)
			continue
		}
		if err := dialects.Check(got, dialects.Options{}); err != nil {
			t.Errorf("%s is %s: %v", endpoint, got, err)
		}
	}
}

func TestBadDSN(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:2379":                    "it is the URL of an etcd, not of a database",
		"https://u:hunter2@h:2379,https://h2:2379": "it is the URL of an etcd, not of a database",
		"nats://u:hunter2@h":                       "nats:// is a store of kine that plinth has not",
		"t4:///data":                               "t4:// is a store of kine that plinth has not",
		"litestream:///a.db":                       "write sqlite://PATH",
		"sqlite://a.db?mode=ro":                    "plinth has to write the database",
		"sqlite://a.db?immutable=1":                "plinth has to write the database",
		"sqlite://a.db?_synchronous=hunter":        "write durability=full, normal or off",
		"sqlite://a.db?frobnicate=1":               `unknown parameter "frobnicate"; known are durability`,
		"mysql://u:hunter2@tcp(h)/db?a=b":          "it has a parameter that plinth has not",
		"mysql://u:hunter2@tcp(h)/db?hunter2":      "it has a parameter that plinth has not",
		"mysql://u:hunter2@tcp(h)/d#b":             "it has a # where none may be",
		"mysql://u:hunter2@tcp(h)/db?%zz":          "its parameters cannot be parsed",
	} {
		got, err := kine.DSN(endpoint)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %s, %v; want %s", endpoint, got, err, want)
		}
	}
	// What plinth has to say about these, too.
	for _, endpoint := range []string{"", "plinth.db", "postgres://u:%zz@h/", "mysql://u:p@h:x/db", "oracle://u@h"} {
		if got, err := kine.DSN(endpoint); err != nil || got != endpoint {
			t.Errorf("%s is %s, %v", endpoint, got, err)
		}
	}
}
