package logtest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // for tests that look at the database by themselves
	_ "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// sql opens the database beside the Log.
func (db database) sql(t testing.TB) *sql.DB {
	t.Helper()
	var raw *sql.DB
	var err error
	switch db.name {
	case "sqlite":
		raw, err = sql.Open("sqlite3", strings.TrimPrefix(db.dsn, "sqlite://"))
	case "postgres":
		raw, err = sql.Open("pgx", db.dsn)
	case "mariadb":
		raw, err = dbserver.OpenMySQL(db.dsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return raw
}

func (db database) begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx, err := db.sql(t).BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// TestObjects reads the view that people query.
func TestObjects(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return // nobody else can look into it
		}
		l := db.open(t)
		object := func(kind, namespace, name string, n int) string {
			if namespace != "" {
				namespace = fmt.Sprintf(`"namespace":%q,`, namespace)
			}
			return fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,%s"creationTimestamp":"2024-01-02T03:04:05Z"},"data":{"n":"%d","text":"ü \u0000 \"metadata\":{"}}`, kind, name, namespace, n)
		}
		a := l.put("/registry/core/configmaps/default/a", 0, object("ConfigMap", "default", "a", 1))
		l.put("/registry/core/configmaps/default/a", a, object("ConfigMap", "default", "a", 2))
		b := l.put("/registry/core/configmaps/default/b", 0, object("ConfigMap", "default", "b", 3))
		l.delete("/registry/core/configmaps/default/b", b, object("ConfigMap", "default", "b", 3))
		l.put("/registry/core/namespaces/default", 0, object("Namespace", "", "default", 4))
		deep := strings.Repeat(`{"a":`, 50) + "1" + strings.Repeat("}", 50)
		l.put("/registry/x/deep/d", 0, `{"kind":"Deep","apiVersion":"x/v1","metadata":{"name":"d"},"spec":`+deep+`}`)

		rows, err := db.sql(t).Query(`
			SELECT api_version, kind, namespace, name, resource_version, CAST(object AS CHAR(100000)), updated_at IS NOT NULL, created_at IS NOT NULL
			FROM objects ORDER BY kind, name`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got []string
		for rows.Next() {
			var version, kind, namespace, name, object string
			var revision int64
			var updated, created bool
			if err := rows.Scan(&version, &kind, &namespace, &name, &revision, &object, &updated, &created); err != nil {
				t.Fatal(err)
			}
			var o struct {
				Metadata struct{ Name, ResourceVersion string }
				Data     map[string]string
			}
			if err := json.Unmarshal([]byte(object), &o); err != nil {
				t.Errorf("%s %s: %v in %s", kind, name, err, object)
			}
			got = append(got, fmt.Sprint(version, " ", kind, " ", namespace, "/", name, " ", revision, " ", o.Metadata.Name, " ", o.Metadata.ResourceVersion, " ", o.Data["n"], " ", updated, " ", created))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		diff(t, "objects", []string{
			"v1 ConfigMap default/a 2 a 2 2 true true",
			"x/v1 Deep /d 6 d 6  true false",
			"v1 Namespace /default 5 default 5 4 true true",
		}, got)
	})
}

// TestEncryptedObjects reads the view where values are no JSON, as those that are encrypted.
func TestEncryptedObjects(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return
		}
		l := db.open(t)
		const sealed = "k8s:enc:aesgcm:v1:key1:\x00\xff\xfe{\"metadata\":{\xc3("
		l.put("/registry/core/secrets/default/a", 0, sealed)
		l.put("/registry/x/wide/b", 0, sealed)
		l.put("/registry/core/secrets/default/c", 0, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"c","namespace":"default"}}`)
		key := "key"
		if db.name == "mariadb" {
			key = "`key`"
		}
		rows, err := db.sql(t).Query(`SELECT kind, namespace, name, resource_version, object IS NULL, created_at IS NULL, ` + key + ` FROM objects ORDER BY resource_version`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got []string
		for rows.Next() {
			var kind sql.NullString
			var namespace, name, key string
			var revision int64
			var null, created bool
			if err := rows.Scan(&kind, &namespace, &name, &revision, &null, &created, &key); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(kind.String, " ", namespace, "/", name, " ", revision, " ", null, " ", created, " ", key))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		diff(t, "objects", []string{
			" default/a 1 true true /registry/core/secrets/default/a",
			" /b 2 true true /registry/x/wide/b",
			"Secret default/c 3 false true /registry/core/secrets/default/c",
		}, got)
	})
}
