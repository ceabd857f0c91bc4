package logtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// asUser returns the DSN for another user of its server.
func asUser(t testing.TB, dsn, user string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	u.User = url.UserPassword(user, "s3cret")
	return u.String()
}

// newRole makes a Postgres role without any right and returns the DSN for it.
func newRole(t testing.TB, dsn string) (role, as string) {
	t.Helper()
	role = "plinth-" + randomName()
	execPostgres(t, dsn, fmt.Sprintf(`CREATE ROLE %q LOGIN PASSWORD 's3cret'`, role))
	t.Cleanup(func() {
		execPostgres(t, dsn, fmt.Sprintf(`DROP OWNED BY %q CASCADE`, role))
		execPostgres(t, dsn, fmt.Sprintf(`DROP ROLE %q`, role))
	})
	return role, asUser(t, dsn, role)
}

var grantIn = regexp.MustCompile(`an administrator run: (GRANT .*)$`)

// refusedFor opens a log that must be refused soon, in one line with the GRANT that is
// missing, and returns that statement.
func refusedFor(t testing.TB, dsn string, want ...string) (grant string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l, err := dialects.Open(ctx, dsn, dialects.Options{})
	if err == nil {
		l.Close()
		t.Fatalf("opened; want %q", want)
	}
	text := err.Error()
	if !errors.Is(err, dialects.ErrDSN) || errors.Is(err, changelog.ErrUnavailable) || strings.Contains(text, "\n") || strings.Contains(text, "s3cret") {
		t.Fatalf("open: %v", err)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("open: %s\nhas no %s", text, w)
		}
	}
	if found := grantIn.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// worksAs opens the log and does with it what a server does.
func worksAs(t testing.TB, dsn string) {
	t.Helper()
	l := log{openDSN(t, dsn), t}
	defer l.Close()
	ctx := context.Background()
	revision := l.write(changelog.Change{Key: "/registry/core/configmaps/default/" + randomName(), Value: []byte(`{"metadata":{}}`)})
	for _, err := range []error{
		func() error { _, err := l.Compact(ctx, revision, 10, changelog.NewRetention()); return err }(),
		l.Raise(ctx, revision+10),
		l.SetMarks(ctx, map[string]string{"a": "b"}),
		l.SetMarks(ctx, map[string]string{"a": ""}),
		l.Reclaim(ctx),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestPostgresRights takes rights away one at a time from a role that owns nothing. Each
// error names the statement that gives them, and once that has run the log opens, also
// where a migration had come half-way.
func TestPostgresRights(t *testing.T) {
	for _, schema := range []string{"public", "plinth's"} {
		t.Run(schema, func(t *testing.T) {
			dsn := Postgres(t)
			role, as := newRole(t, dsn)
			name := schema
			if schema != "public" {
				name = pgx.Identifier{schema}.Sanitize()
				as = withParam(t, as, "search_path", name)
				refusedFor(t, as, "none of the schemas", "CREATE SCHEMA")
				execPostgres(t, dsn, `CREATE SCHEMA `+name)
			}
			execPostgres(t, dsn, fmt.Sprintf(`REVOKE CREATE ON SCHEMA %s FROM public`, name))
			grant := refusedFor(t, as, fmt.Sprintf("GRANT CREATE, USAGE ON SCHEMA %s TO %q", name, role))
			execPostgres(t, dsn, fmt.Sprintf(`GRANT USAGE ON SCHEMA %s TO %q`, name, role))
			refusedFor(t, as, "may not create tables", fmt.Sprintf("GRANT CREATE, USAGE ON SCHEMA %s TO %q", name, role))
			execPostgres(t, dsn, grant)
			worksAs(t, as)

			// A migration that was cut off, by a role that has lost its right meanwhile.
			execPostgres(t, as, `DROP VIEW objects, kv, history; DROP TABLE meta; UPDATE schema_migrations SET version = 1, dirty = true`)
			execPostgres(t, dsn, fmt.Sprintf(`REVOKE CREATE ON SCHEMA %s FROM %q`, name, role))
			execPostgres(t, dsn, refusedFor(t, as, "may not create tables"))
			worksAs(t, as)

			// A migrated log is opened without the right to create.
			execPostgres(t, dsn, fmt.Sprintf(`REVOKE CREATE ON SCHEMA %s FROM %q`, name, role))
			worksAs(t, as)
		})
	}
}

// TestPostgresTableRights opens a log whose tables belong to another role.
func TestPostgresTableRights(t *testing.T) {
	dsn := Postgres(t)
	openDSN(t, dsn).Close()
	role, as := newRole(t, dsn)
	want := fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON public.author, public.kept, public.lease, public.log, public.meta, public.past, public.schema_migrations TO %q", role)
	execPostgres(t, dsn, refusedFor(t, as, "schema_migrations", want))
	worksAs(t, as)
	for table, rights := range map[string]string{"log": "SELECT INSERT DELETE", "meta": "SELECT UPDATE", "author": "SELECT INSERT", "past": "SELECT INSERT UPDATE DELETE", "kept": "SELECT INSERT UPDATE DELETE", "schema_migrations": "SELECT"} {
		for _, right := range strings.Fields(rights) {
			execPostgres(t, dsn, fmt.Sprintf(`REVOKE %s ON %s FROM %q`, right, table, role))
			execPostgres(t, dsn, refusedFor(t, as, table, want))
			worksAs(t, as)
		}
	}
	execPostgres(t, dsn, `UPDATE schema_migrations SET version = 5, dirty = true`)
	execPostgres(t, dsn, refusedFor(t, as, "GRANT CREATE, USAGE ON SCHEMA public"))
	refusedFor(t, as, "must be owner", "plinth serve once as their owner")
	execPostgres(t, dsn, `UPDATE schema_migrations SET version = 6, dirty = false`)
	execPostgres(t, dsn, fmt.Sprintf(`REVOKE USAGE ON SCHEMA public FROM public; REVOKE USAGE ON SCHEMA public FROM %q`, role))
	refusedFor(t, as, `use schema "public"`, "GRANT CREATE, USAGE ON SCHEMA")
}

// TestPostgresLeaseRights: a log of raw keys needs one table more than one of objects.
func TestPostgresLeaseRights(t *testing.T) {
	db := database{"postgres", Postgres(t)}
	db.openRaw(t)
	role, as := newRole(t, db.dsn)
	execPostgres(t, db.dsn, fmt.Sprintf(`GRANT SELECT, INSERT, UPDATE, DELETE ON log, meta, past, kept, schema_migrations TO %q`, role))
	_, err := dialects.Open(t.Context(), as, dialects.Options{Kind: changelog.KindEtcd})
	if err == nil || !errors.Is(err, dialects.ErrDSN) || !strings.Contains(err.Error(), "on table lease") {
		t.Fatalf("open without rights on leases: %v", err)
	}
	execPostgres(t, db.dsn, grantIn.FindStringSubmatch(err.Error())[1])
	l := database{"postgres", as}.openRaw(t)
	l.grant(hour, 1)
	l.do(changelog.Decision{Revoke: []int64{1}}, put("a", "1"))
	if err := l.Defragment(t.Context()); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("defragment another one's table: %v", err)
	}
}

// TestMySQLRights does the same with the rights of MariaDB, which are for a database.
// Some are needed only to migrate.
func TestMySQLRights(t *testing.T) {
	admin := sharedMariaDB(t)
	user := "plinth" + randomName()
	account := fmt.Sprintf("'%s'@'127.0.0.1'", user)
	execMySQL(t, admin, fmt.Sprintf("CREATE USER %s IDENTIFIED BY 's3cret'", account))
	t.Cleanup(func() { execMySQL(t, admin, "DROP USER "+account) })
	for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "CREATE VIEW"} {
		t.Run(strings.ReplaceAll(right, " ", "-"), func(t *testing.T) {
			dsn := MariaDB(t)
			as := asUser(t, dsn, user)
			u, err := url.Parse(dsn)
			if err != nil {
				t.Fatal("the server's DSN cannot be parsed")
			}
			on := fmt.Sprintf(" ON `%s`.* ", u.Path[1:])
			grant := "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, CREATE VIEW" + on + "TO "
			refusedFor(t, as, "use database", grant+"'"+user+"'@")
			execMySQL(t, admin, grant+account)
			t.Cleanup(func() { execMySQL(t, admin, "REVOKE ALL"+on+"FROM "+account) })

			execMySQL(t, admin, "REVOKE "+right+on+"FROM "+account)
			execMySQL(t, admin, refusedFor(t, as, "may not "+right, grant+account))
			worksAs(t, as)

			execMySQL(t, admin, "REVOKE "+right+on+"FROM "+account)
			if slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE"}, right) {
				execMySQL(t, admin, refusedFor(t, as, "may not "+right, grant+account))
			}
			worksAs(t, as)
		})
	}
}

func withParam(t testing.TB, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}
