package logtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestAuthors adds authors in two parts and reads them.
func TestAuthors(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		authors := func(limit int) map[changelog.Author]int64 {
			t.Helper()
			all, err := l.Authors(t.Context(), limit)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if all := authors(10); len(all) != 0 {
			t.Errorf("a new log has %v", all)
		}
		some := []changelog.Author{
			{User: "jane", Verb: "create", Manager: "kubectl"},
			{User: "system:serviceaccount:kube-system:ü😀", Impersonator: "jane", Verb: "update", Subresource: "status", Manager: strings.Repeat("m", 512)},
			{},
		}
		first, err := l.AddAuthors(t.Context(), some[:2])
		if err != nil || len(first) != 2 || first[0] <= 0 || first[1] <= first[0] {
			t.Fatalf("%v, %v", first, err)
		}
		second, err := l.AddAuthors(t.Context(), some[2:])
		if err != nil || len(second) != 1 {
			t.Fatalf("%v, %v", second, err)
		}
		diff(t, "authors", map[changelog.Author]int64{some[0]: first[0], some[1]: first[1], some[2]: second[0]}, authors(10))
		diff(t, "newest author", map[changelog.Author]int64{some[2]: second[0]}, authors(1))
	})
}

// TestHistory reads the view of changes that people query, of what a Store has written.
func TestHistory(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return // nobody else can look into it
		}
		open := func() *sqlstore.Store {
			s, err := object.Open(t.Context(), openDSN(t, db.dsn), sqlstore.Options{Author: changelog.Author{User: "system:apiserver"}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		commit := func(o *changelog.Origin, c sqlstore.Change) *sqlstore.Entry {
			t.Helper()
			ctx := t.Context()
			if o != nil {
				ctx = sqlstore.WithOrigin(ctx, o)
			}
			e, err := s.Commit(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		by := func(user, impersonator, verb, subresource, manager, id string) *changelog.Origin {
			return &changelog.Origin{Author: changelog.Author{User: user, Impersonator: impersonator, Verb: verb, Subresource: subresource, Manager: manager}, AuditID: id}
		}
		const text = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop"},"spec":{"text":"ü \\u0000"}}`
		web := commit(by("jane", "", "create", "", "kubectl-create", "0f8fad5b-d9cb-469f-a165-70867728950e"),
			sqlstore.Change{Key: "/registry/apps/deployments/shop/web", Value: []byte(text)})
		web = commit(by("system:node:a", "jane", "patch", "status", "kubelet", "of 16 bytes text"),
			sqlstore.Change{Key: web.Key, Expect: web.Revision, Value: []byte(text)})
		commit(nil, sqlstore.Change{Key: "/registry/core/namespaces/shop", Value: []byte("k8s:enc:secret")})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open()
		// Bytes that are no text, and an author that the log knows from before.
		commit(by("jane", "", "create", "", "kubectl-create", "a\x00\xff"), sqlstore.Change{Key: "/registry/core/configmaps/shop/c", Value: []byte(`{"kind":"ConfigMap","metadata":{"name":"c"}}`)})
		commit(by("j\x00", "", "delete", "", strings.Repeat("ü", 300), ""), object.Tombstone(web))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"1 jane//create//kubectl-create created deployments.apps Deployment shop/web 0f8fad5b-d9cb-469f-a165-70867728950e",
			"2 system:node:a/jane/patch/status/kubelet changed deployments.apps Deployment shop/web of 16 bytes text",
			"3 system:apiserver//// created namespaces - /shop -",
			"4 jane//create//kubectl-create created configmaps ConfigMap shop/c a\ufffd\ufffd",
			"5 j\ufffd//delete//" + strings.Repeat("ü", 256) + " deleted deployments.apps Deployment shop/web -",
		}
		diff(t, "history", want, db.history(t))
		s = open()
		checkHistory(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db.askHistory(t)
		var n int
		if err := db.sql(t).QueryRow(`SELECT count(*) FROM author`).Scan(&n); err != nil || n != 4 {
			t.Errorf("%d authors, %v", n, err)
		}
	})
}

// checkHistory reads the changes of TestHistory through a Store.
func checkHistory(t *testing.T, s *sqlstore.Store) {
	deployments, end := changelog.RangeOf("/registry/apps/deployments/")
	all := changelog.HistoryQuery{Through: changelog.Forever, Limit: 10}
	with := func(change func(*changelog.HistoryQuery)) changelog.HistoryQuery {
		q := all
		change(&q)
		return q
	}
	for _, c := range []struct {
		name string
		q    changelog.HistoryQuery
		want string
	}{
		{"all", all, "5 4 3 2 1"},
		{"oldest first", with(func(q *changelog.HistoryQuery) { q.Oldest = true }), "1 2 3 4 5"},
		{"limit", with(func(q *changelog.HistoryQuery) { q.Limit = 2 }), "5 4"},
		{"between", with(func(q *changelog.HistoryQuery) { q.After, q.Through = 1, 3 }), "3 2"},
		{"range", with(func(q *changelog.HistoryQuery) { q.From, q.To = deployments, end }), "5 2 1"},
		{"range, oldest first", with(func(q *changelog.HistoryQuery) { q.From, q.To, q.Oldest, q.Limit = deployments, end, true, 2 }), "1 2"},
		{"range, between", with(func(q *changelog.HistoryQuery) { q.From, q.To, q.After, q.Through = deployments, end, 1, 4 }), "2"},
		{"nothing", with(func(q *changelog.HistoryQuery) { q.After = 5 }), ""},
	} {
		for _, sizes := range []bool{false, true} {
			c.q.Sizes = sizes
			rows, err := s.History(t.Context(), c.q)
			if err != nil {
				t.Fatal(c.name, err)
			}
			var got []string
			for _, r := range rows {
				got = append(got, fmt.Sprint(r.Revision))
				if (r.Size > 0) != sizes || r.Value != nil {
					t.Errorf("%s: revision %d has %d bytes, and the value %q", c.name, r.Revision, r.Size, r.Value)
				}
			}
			diff(t, c.name, c.want, strings.Join(got, " "))
		}
	}
	rows, err := s.History(t.Context(), with(func(q *changelog.HistoryQuery) { q.Oldest = true }))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "patch", changelog.Origin{AuditID: "of 16 bytes text", Author: changelog.Author{
		User: "system:node:a", Impersonator: "jane", Verb: "patch", Subresource: "status", Manager: "kubelet"}}, rows[1].Origin)
	diff(t, "audit id", "0f8fad5b-d9cb-469f-a165-70867728950e", rows[0].Origin.AuditID)
	if first, last := rows[0], rows[4]; !last.Deleted || first.Deleted || last.CreateRevision != 1 || first.At == 0 || last.At < first.At {
		t.Errorf("%+v, %+v", first.Row, last.Row)
	}
	for _, c := range []struct{ at, want int64 }{{rows[0].At - 1, 0}, {rows[4].At, 5}} {
		if n, err := s.RevisionAt(t.Context(), c.at); err != nil || n != c.want {
			t.Errorf("revision %d, %v; want %d", n, err, c.want)
		}
	}
}

// history describes the rows of the view.
func (db database) history(t *testing.T) (out []string) {
	t.Helper()
	rows, err := db.sql(t).QueryContext(context.Background(), `
		SELECT revision, who, impersonator, verb, subresource, manager, action, resource, coalesce(kind, '-'), namespace, name, coalesce(audit_id, '-'), time
		FROM history ORDER BY revision`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var revision int64
		var who, impersonator, verb, subresource, manager, audit sql.NullString
		var action, resource, kind, namespace, name string
		var at any
		if err := rows.Scan(&revision, &who, &impersonator, &verb, &subresource, &manager, &action, &resource, &kind, &namespace, &name, &audit, &at); err != nil {
			t.Fatal(err)
		}
		if at == nil {
			t.Errorf("revision %d has no time", revision)
		}
		out = append(out, fmt.Sprintf("%d %s/%s/%s/%s/%s %s %s %s %s/%s %s", revision, who.String, impersonator.String, verb.String,
			subresource.String, manager.String, action, resource, kind, namespace, name, audit.String))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// askHistory runs the queries about the view history in docs/sql.md that are for the dialect.
func (db database) askHistory(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	label := map[string]string{"sqlite": "SQLite:", "postgres": "Postgres:", "mariadb": "MySQL and MariaDB:"}[db.name]
	asked := 0
	parts := strings.Split(string(page), "```")
	for i := 1; i < len(parts); i += 2 {
		before, query := strings.TrimSpace(parts[i-1]), strings.TrimPrefix(parts[i], "sql\n")
		if !strings.Contains(query, "FROM history") || strings.HasSuffix(before, ":") && !strings.HasSuffix(before, label) {
			continue
		}
		asked++
		query = strings.ReplaceAll(query, "< '2026", "< '2999") // until today
		query = strings.ReplaceAll(strings.ReplaceAll(query, "'demo'", "'shop'"), "'gone'", "'web'")
		rows, err := db.sql(t).Query(query)
		if err != nil {
			t.Errorf("%s%v", query, err)
			continue
		}
		if !rows.Next() {
			t.Errorf("%sno rows, %v", query, rows.Err())
		}
		rows.Close()
	}
	if asked != 3 {
		t.Errorf("%d queries in docs/sql.md", asked)
	}
}
