package dialects

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func noEnv(string) string { return "" }

func TestBadDSN(t *testing.T) {
	for _, test := range []struct{ dsn, want string }{
		{"", "write sqlite://path"},
		{"plinth.db", `"plinth.db" has no scheme; did you mean sqlite://plinth.db?`},
		{"/var/lib/plinth/db", "did you mean sqlite:///var/lib/plinth/db?"},
		{"../db", "did you mean sqlite://../db?"},
		{":memory:", "did you mean sqlite://:memory:?"},
		{"sqlite:plinth.db", "did you mean sqlite://plinth.db?"},
		{"file:/a/b", "did you mean sqlite:///a/b?"},
		{"sqlite:/a/b", "did you mean sqlite:///a/b?"},
		{"postgres:u:hunter2@h/db", `begins with "postgres" and has no ://; write sqlite://path`},
		{"hunter2", "it is not shown"},
		{"u:hunter2@h/db.io", "it is not shown"},
		{"hunter2@h/db.io", "it is not shown"},
		{"host=h password=hunter2 dbname=x.db", "it is not shown"},
		{"postgress://x:hunter2@y/z", "begins with postgress://, which is not known; did you mean postgres://?"},
		{"jdbc:postgresql://x:hunter2@y/z", "write sqlite://path"},
		{"u:hunter2://y/z", "write sqlite://path"},
		{"root:hunter2@tcp(localhost:3306)/db", "write sqlite://path"},
		{"oracle://x:hunter2@y/z", "begins with oracle://, which is not known; write sqlite://path"},
		{"sqlite://", "write sqlite://plinth.db"},
		{"sqlite://a.db?durability=some", "write full, normal or off"},
		{"sqlite://a.db?maxconns=0", "above 0"},
		{"sqlite://a.db?reserve=much", "a number of MiB"},
		{"sqlite://a.db?reserve=-1MiB", "a number of MiB"},
		{"sqlite://a.db?cache=shared", "known are durability"},
		{"postgres://u:hunter2@h:port/db", "cannot be parsed"},
		{"postgres://u:12/hunter2@h/db", "percent-encoded"},
		{"postgres://u:a?hunter2@h/db", "percent-encoded"},
		{"postgres://u:a#hunter2@h/db", "percent-encoded"},
		{"postgres://u:a@hunter2@h/db", "percent-encoded"},
		{"postgres://u:%zzhunter2@h/db", "cannot be parsed"},
		{"postgres://u:hunter2@h/db?poolsize=3", "parameter poolsize is not known here"},
		{"postgres://u:hunter2@h/db?ssl_mode=require", `unknown parameter "ssl_mode", did you mean sslmode?`},
		{"postgres://u:hunter2@h/db?pasword=hunter2", `unknown parameter "pasword"; known are`},
		{"postgres://u@h/db?password=hunter2", "parameter password is not known here"},
		{"mysql://u:hunter2@h/db?parseTime=true", "parameter parseTime is not known here"},
		{"mysql://u:hunter2@h/db?readTimout=1s", `unknown parameter "readTimout", did you mean readTimeout?`},
		{"mysql://u:12?s3cret&hunter2", "it has an unknown parameter (not shown"}, // is not far from socket
		{"mysql://u:12?hunter2&hunter2", "it has an unknown parameter (not shown"},
		{"postgres://u:12?a&hunter2sslmode", "it has an unknown parameter (not shown"},
		{"postgres://u:hunter2@h/db?sslmode=maybe", "sslmode"},
		{"postgres://u:hunter2@h/db?maxconns=1", "from 2 to"},
		{"postgres://u:hunter2@h/db?maxconns=2147483648", "from 2 to 2147483647"},
		{"postgres://u@h/db?password_file=/does/not/exist", "no such file"},
		{"postgres://u:1,hunter2/db", "cannot be parsed"},
		{"postgres://u:hunter2,g:1/db", "colon"},
		{"postgres://u:hunter2@h:1,g:2:3/db", "colon"},
		{"mysql://u:hunter2,g:1/db", "colon"},
		{"mysql://u:hunter2@h:1,g:2:3/db", "colon"},
		{"mysql://u:hunter2@h/", "names no database"},
		{"mysql://u:hunter2@h/db?timeout=3", "duration"},
		{"mysql://u:hunter2@h/db?tls=perhaps", "tls must be"},
		{"mysql://u:hunter2@h/db?tls_ca=/does/not/exist", "no such file"},
		{"mysql://u:hunter2@h/db?timeout=3s&timeout=4s", "given twice"},
	} {
		err := Check(test.dsn, Options{Getenv: noEnv})
		switch {
		case err == nil:
			t.Errorf("%s: no error", test.dsn)
		case !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: error %q does not contain %q", test.dsn, err, test.want)
		case strings.Contains(err.Error(), "hunter2"), strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: error %q shows the password or has two lines", test.dsn, err)
		}
	}
}

// TestSeveralHosts has hosts of Postgres with their ports, of which only a primary is wanted.
func TestSeveralHosts(t *testing.T) {
	for rest, want := range map[string]bool{
		"u@a,b/d":                                  true,
		"u@a:1,b:2/d?sslmode=disable":              true,
		"u@a:1,b:2/d?target_session_attrs=any":     false,
		"u@a:1,b:2/d?target_session_attrs=primary": true,
		"u@a:1/d":                                 false,
		"u@/d?host=a,b&port=1,2":                  true,
		"u@/d?host=/run/a,/run/b":                 true,
		"u@a:1/d?target_session_attrs=read-write": true,
	} {
		o, _, err := parsePostgres(rest, Options{Getenv: noEnv})
		if err != nil {
			t.Errorf("postgres://%s: %v", rest, err)
			continue
		}
		if got := o.Config.ValidateConnect != nil; got != want {
			t.Errorf("postgres://%s: a server is looked at: %v", rest, got)
		}
	}
}

func TestPasswordSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name, value string) func(string) string {
		return func(n string) string {
			if n == name {
				return value
			}
			return ""
		}
	}
	for _, test := range []struct {
		rest   string
		getenv func(string) string
		want   string
	}{
		{"u:in%40dsn@h/db", env("PLINTH_DB_PASSWORD", "from-env"), "in@dsn"},
		{"u@h/db?password_file=" + file, env("PLINTH_DB_PASSWORD", "from-env"), "from-file"},
		{"u@h/db", env("PLINTH_DB_PASSWORD", "from-env"), "from-env"},
		{"u@h/db", env("PLINTH_DB_PASSWORD_FILE", file), "from-file"},
		{"u@h/db", noEnv, ""},
	} {
		po, _, err := parsePostgres(test.rest, Options{Getenv: test.getenv})
		if err != nil || po.Config.Password != test.want {
			t.Errorf("postgres://%s: password %q, %v; want %q", test.rest, po.Config.Password, err, test.want)
		}
		mo, _, err := parseMySQL(test.rest, Options{Getenv: test.getenv})
		if err != nil || mo.Config.Passwd != test.want {
			t.Errorf("mysql://%s: password %q, %v; want %q", test.rest, mo.Config.Passwd, err, test.want)
		}
	}
}

// TestRefusedConnection proves that a driver's own errors do not show the password.
func TestRefusedConnection(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, dsn := range []string{
		"postgres://u:hunter2@127.0.0.1:1/db",
		"mysql://u:hunter2@127.0.0.1:1/db",
		"sqlite:///dev/null/plinth.db",
	} {
		_, err := Open(ctx, dsn, Options{Getenv: noEnv})
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %q", dsn, err)
		}
	}
}

// FuzzDSN looks for a DSN whose error shows the password, encoded as it should be or not.
func FuzzDSN(f *testing.F) {
	f.Add("postgres", "p", "@h/db?sslmode=x", false)
	f.Add("mysql", "a/b?c&d#e%zz", "@h:1/db", true)
	f.Add("postgres", "a:b@c", "@h/db?host=y", false)
	f.Add("sqlite", "x", "y", true)
	f.Add("postgres", "?a&", "", false)
	f.Add("mysql", "@h/db?ssl&", "&x=y", false)
	f.Add("postgress", "x", "@h/db", false)
	f.Fuzz(func(t *testing.T, scheme, password, after string, encode bool) {
		secret := "Hunter2Secret" // of letters only, so that it survives any encoding
		password = secret + password + secret
		if encode {
			password = url.QueryEscape(password)
		}
		if strings.EqualFold(scheme, "sqlite") {
			return // has no password
		}
		err := Check(scheme+"://user:"+password+after, Options{Getenv: noEnv})
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("error shows the password or has two lines: %q", err)
		}
	})
}

// TestRedact has drivers and servers repeat passwords.
func TestRedact(t *testing.T) {
	cause := errors.New("cause")
	for text, want := range map[string]string{
		"no user u":        "no user u",
		"dial u:hunter2@h": "dial u:xxxxx@h",
		"hunter2 of u:hunter2@h:\n\tnot hunter2hunter2": "xxxxx of u:xxxxx@h: not xxxxxxxxxx",
		"hunter%32 is hunter2":                          "xxxxx is xxxxx",
	} {
		err := redact(fmt.Errorf("%s%w", text, cause), []string{"", "hunter2", "hunter%32"})
		if got := strings.TrimSuffix(err.Error(), "cause"); strings.TrimSpace(got) != want || !errors.Is(err, cause) {
			t.Errorf("%q is shown as %q", text, got)
		}
		if shown := fmt.Sprintf("%+v %#v", err, errors.Unwrap(err)); strings.Contains(text, "hunter") && strings.Contains(shown, "hunter") {
			t.Errorf("%q is in %q", text, shown)
		}
	}
}
