package logtest

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestRefusedDSN opens what no waiting makes right. The error says what to write.
func TestRefusedDSN(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		for name, test := range map[string]struct {
			change func(*url.URL)
			want   string
		}{
			"user":     {func(u *url.URL) { u.User = url.UserPassword("no-such-user", "hunter2") }, `access denied for user "no-such-user"; write the right user and password`},
			"database": {func(u *url.URL) { u.Path = "/no-such-database" }, `database "no-such-database" does not exist; create it`},
		} {
			u, err := url.Parse(db.dsn)
			if err != nil {
				t.Fatal("the server's DSN cannot be parsed")
			}
			test.change(u)
			l, err := dialects.Open(context.Background(), u.String(), dialects.Options{})
			if err == nil {
				l.Close()
				t.Fatalf("wrong %s: opened", name)
			}
			if !errors.Is(err, dialects.ErrDSN) || errors.Is(err, changelog.ErrUnavailable) {
				t.Errorf("wrong %s: %v, want ErrDSN", name, err)
			}
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "hunter2") || strings.Contains(text, "\n") {
				t.Errorf("wrong %s: %q does not contain %q, shows the password or has two lines", name, text, test.want)
			}
		}
	})
}

// TestDroppedDatabase gets the same answer from a log that is open: then it means that
// the database is away, perhaps being restored.
func TestDroppedDatabase(t *testing.T) {
	dsn := Postgres(t)
	l := openDSN(t, dsn)
	defer l.Close()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	execPostgres(t, sharedPostgres(t), `DROP DATABASE `+u.Path[1:]+` WITH (FORCE)`)
	for range 3 { // the first ones meet connections that were cut
		if _, err = l.Head(context.Background()); !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, dialects.ErrDSN) {
			t.Errorf("head: %v, want ErrUnavailable", err)
		}
	}
	if !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("the last error is %v, and not that the database does not exist", err)
	}
}
