package dialects_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
)

// A database is named with what tells it from others, and without its password.
func TestDescribe(t *testing.T) {
	here, err := filepath.Abs("plinth.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLINTH_DB_PASSWORD", "s3cret")
	for dsn, want := range map[string]string{
		"sqlite://plinth.db?durability=normal":                    "sqlite://" + here,
		"sqlite:///a b/c.db":                                      "sqlite:///a b/c.db",
		"sqlite://:memory:":                                       "sqlite://:memory:",
		"sqlite://x.db?mode=memory":                               "sqlite://:memory:",
		"postgres://u:s3cret@h/d?sslmode=disable":                 "postgres://u@h:5432/d",
		"postgresql://u@h:99/d?search_path=a%20b":                 "postgres://u@h:99/d?search_path=a+b",
		"postgres://u@/d?host=/run/postgresql":                    "postgres://u@/d?host=%2Frun%2Fpostgresql&port=5432",
		"postgres://u:s3cret@h:1,g:2/d":                           "postgres://u@h:1,g:2/d",
		"postgres://u:s3cret@h,g/d?search_path=a":                 "postgres://u@h:5432,g:5432/d?search_path=a",
		"postgres://u@/d?host=/run/a,/run/b&sslmode=disable":      "postgres://u@/d?host=%2Frun%2Fa%2C%2Frun%2Fb&port=5432%2C5432",
		"mariadb://u%40x:s3cret@h/d":                              "mysql://u%40x@h:3306/d",
		"mysql://u@[::1]:99/d?password_file=/dev/null&timeout=1s": "mysql://u@[::1]:99/d",
		"mysql://u:s3cret@h,g:99/d":                               "mysql://u@h:3306,g:99/d",
		"mysql://u@h/d?socket=/run/mysqld/mysqld.sock":            "mysql://u@/d?socket=%2Frun%2Fmysqld%2Fmysqld.sock",
		"oracle://u:s3cret@h/d":                                   "a database of an unknown kind",
	} {
		if got := dialects.Describe(dsn); got != want {
			t.Errorf("%s is %s, want %s", dsn, got, want)
		}
	}
	for dsn, want := range map[string]bool{"sqlite://:memory:": true, "sqlite://x?mode=memory": true, "sqlite://x": false, "postgres://u@h/d": false} {
		if dialects.InMemory(dsn) != want {
			t.Errorf("%s in memory: %v", dsn, !want)
		}
	}
}

// Two DSNs of one database are known as such, whatever else they say.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	file, link, hard, other := filepath.Join(dir, "a.db"), filepath.Join(dir, "link.db"), filepath.Join(dir, "hard.db"), filepath.Join(dir, "b.db")
	for _, name := range []string{file, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("a.db", link), os.Link(file, hard)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"sqlite://" + file, "sqlite://" + dir + "/./a.db?durability=normal", true},
		{"sqlite://" + file, "sqlite://" + link, true},
		{"sqlite://" + file, "sqlite://" + hard, true},
		{"sqlite://" + file, "sqlite://" + other, false},
		{"sqlite://" + file, "sqlite://" + dir + "/none.db", false},
		{"sqlite://:memory:", "sqlite://:memory:", false},
		{"postgres://u:a@h/d", "postgresql://u:b@h:5432/d?sslmode=disable", true},
		{"postgres://u@h/d", "postgres://u@h/d?search_path=other", false},
		{"postgres://u@h/d", "mysql://u@h/d", false},
		{"mysql://u@h/d", "mariadb://u@h:3306/d", true},
		{"mysql://u@h/d", "mysql://u@h/e", false},
		{"postgres://%zz", "postgres://%zz", false},
		{"oracle://h/d", "oracle://h/d", false},
	} {
		if got := dialects.Same(c.a, c.b); got != c.want {
			t.Errorf("%s and %s are the same: %v", c.a, c.b, got)
		}
	}
}

// FuzzDescribe looks for a DSN of which a part of the password is shown, whether it is
// encoded as it should be or not.
func FuzzDescribe(f *testing.F) {
	f.Add("postgres", "p", "@h/db?sslmode=x", false)
	f.Add("mysql", "a/b?c&d#e%zz", "@h:1/db", true)
	f.Add("postgres", "a:b@c", "@h/db?host=y", false)
	f.Add("mariadb", "?tls=true&socket=", "@h/db", false)
	f.Add("postgres", "", ":", false)
	f.Add("sqlite", "x", "y", true)
	f.Fuzz(func(t *testing.T, scheme, password, after string, encode bool) {
		secret := "Hunter2Secret" // of letters only, so that it survives any encoding
		password = secret + password + secret
		if encode {
			password = url.QueryEscape(password)
		}
		if strings.EqualFold(scheme, "sqlite") {
			return // has no password
		}
		if strings.Contains(password, "@") && !strings.Contains(after, "@") {
			return // reads like a password and a host
		}
		if shown := dialects.Describe(scheme + "://user:" + password + after); strings.Contains(shown, secret) {
			t.Errorf("the password is shown: %q", shown)
		}
	})
}
