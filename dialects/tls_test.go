package dialects

import (
	"strings"
	"testing"
)

func TestInsecure(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for dsn, want := range map[string]string{
		"sqlite://x":                               "",
		"postgres://u@/d?host=/run/postgresql":     "",
		"postgres://u@127.0.0.1/d":                 "",
		"postgres://u@localhost/d":                 "",
		"postgres://u@[::1]/d":                     "",
		"postgres://u@db/d":                        "may be without TLS; write sslmode=verify-full",
		"postgres://u@db/d?sslmode=prefer":         "may be without TLS",
		"postgres://u@db/d?sslmode=disable":        "may be without TLS",
		"postgres://u@db/d?sslmode=require":        "is not verified; write sslmode=verify-full",
		"postgres://u@db/d?sslmode=verify-full":    "",
		"mysql://u@db/d":                           "may be without TLS; write tls=true",
		"mysql://u@db/d?tls=preferred":             "may be without TLS",
		"mysql://u@db/d?tls=skip-verify":           "is not verified; write tls=true",
		"mysql://u@db/d?tls=true":                  "",
		"mysql://u@db/d?socket=/run/mysqld/m.sock": "",
		"mysql://u@10.1.2.3:3306/d":                "may be without TLS",
	} {
		if got := Insecure(dsn); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", dsn, got)
		}
	}
}
