package scrub_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	. "github.com/plinth-io/plinth/sqlstore/scrub"
)

// harm is what somebody does to a database while a plinth serves it. The statements are those of all dialects, or
// of each; none: the dialect cannot be harmed so. {key}, {at} and {value} are as in damages.
type harm struct {
	name                  string
	sql                   string
	lite, postgres, maria string
	want                  string // in one of the problems
	tables                string // what is harmed
}

func (h *harm) in(dialect string) string {
	if h.sql != "" {
		return inDialect(dialect, h.sql+" ")
	}
	return inDialect(dialect, map[string]string{"sqlite": h.lite, "postgres": h.postgres, "mariadb": h.maria}[dialect]+" ")
}

// all returns a harm that is done in the same way to every dialect.
func all(name, sql, tables, want string) harm {
	return harm{name: name, sql: sql, tables: tables, want: want}
}

const noViews = `DROP VIEW objects; DROP VIEW history; DROP VIEW kv; `

var harms = []harm{
	all("no view objects", `DROP VIEW objects`, "objects", "view objects: it is missing"),
	all("no view history", `DROP VIEW history`, "history", "view history: it is missing"),
	all("no view kv", `DROP VIEW kv`, "kv", "view kv: it is missing"),
	{name: "no index of keys", lite: `DROP INDEX log_key_id`, postgres: `DROP INDEX log_key_id`, maria: `DROP INDEX log_key_id ON log`, tables: "log", want: "log_key_id: it is missing"},
	{name: "no index of past keys", lite: `DROP INDEX past_key_id`, postgres: `DROP INDEX past_key_id`, maria: `DROP INDEX past_key_id ON past`, tables: "past", want: "past_key_id: it is missing"},
	{name: "no index of expiry", lite: `DROP INDEX past_expires`, postgres: `DROP INDEX past_expires`, maria: `DROP INDEX past_expires ON past`, tables: "past", want: "past_expires: it is missing"},
	{name: "no index of leases", lite: `DROP INDEX lease_expires`, postgres: `DROP INDEX lease_expires`, maria: `DROP INDEX lease_expires ON lease`, tables: "lease", want: "lease_expires: it is missing"},
	{
		name: "index of other columns", tables: "past", want: "should be unique on",
		lite:     `DROP INDEX past_key_id; CREATE UNIQUE INDEX past_key_id ON past (id, key)`,
		postgres: `DROP INDEX past_key_id; CREATE UNIQUE INDEX past_key_id ON past (id, key)`,
		maria:    "ALTER TABLE past DROP INDEX past_key_id, ADD UNIQUE INDEX past_key_id (id, `key`)",
	},
	{
		name: "index that is not unique", tables: "log", want: "should be unique on",
		lite:     `DROP INDEX log_key_id; CREATE INDEX log_key_id ON log (key, id)`,
		postgres: `DROP INDEX log_key_id; CREATE INDEX log_key_id ON log (key, id)`,
		maria:    "ALTER TABLE log DROP INDEX log_key_id, ADD INDEX log_key_id (`key`, id)",
	},
	{name: "no primary key", postgres: `ALTER TABLE log DROP CONSTRAINT log_pkey`, maria: "ALTER TABLE log MODIFY id bigint NOT NULL, DROP PRIMARY KEY", tables: "log", want: "",
		lite: `CREATE TABLE other AS SELECT * FROM kept; DROP TABLE kept; ALTER TABLE other RENAME TO kept`},
	{name: "no table past", lite: noViews + `DROP TABLE past`, postgres: `DROP TABLE past CASCADE`, maria: `DROP TABLE past`, tables: "past", want: "past"},
	{name: "no table author", lite: noViews + `DROP TABLE author`, postgres: `DROP TABLE author CASCADE`, maria: `DROP TABLE author`, tables: "author", want: "table author: it cannot be read"},
	{name: "no table lease", sql: `DROP TABLE lease`, tables: "lease", want: "column lease.id: it is missing"},
	{name: "no table kept", sql: `DROP TABLE kept`, tables: "kept", want: "table kept: it cannot be read"},
	{name: "no table meta", lite: `DROP TABLE meta`, postgres: `DROP TABLE meta CASCADE`, maria: `DROP TABLE meta`, tables: "meta", want: "table meta: it cannot be read"},
	{name: "no table log", lite: `DROP TABLE log`, postgres: `DROP TABLE log CASCADE`, maria: `DROP TABLE log`, tables: "log", want: "table log: no row can be read"},
	all("no table of versions", `DROP TABLE schema_migrations`, "schema_migrations", "table schema_migrations: "),
	all("no version", `DELETE FROM schema_migrations`, "schema_migrations", "table schema_migrations: "),
	{name: "half a migration", lite: `UPDATE schema_migrations SET dirty = 1`, postgres: `UPDATE schema_migrations SET dirty = true`, maria: `UPDATE schema_migrations SET dirty = 1`, tables: "schema_migrations", want: "table schema_migrations: "},
	{name: "another name of value", lite: noViews + `ALTER TABLE log RENAME COLUMN value TO val`, postgres: `ALTER TABLE log RENAME COLUMN value TO val`, maria: `ALTER TABLE log RENAME COLUMN value TO val`, tables: "log", want: "column log.value: it is missing"},
	{name: "another name of at", lite: noViews + `ALTER TABLE past RENAME COLUMN at TO att`, postgres: `ALTER TABLE past RENAME COLUMN at TO att`, maria: "ALTER TABLE past RENAME COLUMN `at` TO att", tables: "past", want: "column past.at: it is missing"},
	{name: "another name of author", lite: noViews + `ALTER TABLE author RENAME COLUMN who TO whom`, postgres: `ALTER TABLE author RENAME COLUMN who TO whom`, maria: `ALTER TABLE author RENAME COLUMN who TO whom`, tables: "author", want: "column author.who: it is missing"},
	{name: "no audit id", lite: noViews + `ALTER TABLE log DROP COLUMN audit_id`, postgres: `ALTER TABLE log DROP COLUMN audit_id CASCADE`, maria: `ALTER TABLE log DROP COLUMN audit_id`, tables: "log", want: "column log.audit_id: it is missing"},
	{name: "no manager", lite: noViews + `ALTER TABLE author DROP COLUMN manager`, postgres: `ALTER TABLE author DROP COLUMN manager CASCADE`, maria: `ALTER TABLE author DROP COLUMN manager`, tables: "author", want: "column author.manager: it is missing"},
	{name: "no lease", lite: noViews + `ALTER TABLE log DROP COLUMN lease`, postgres: `ALTER TABLE log DROP COLUMN lease CASCADE`, maria: `ALTER TABLE log DROP COLUMN lease`, tables: "log", want: "column log.lease: it is missing"},
	{name: "type of expiry", lite: noViews + `DROP INDEX past_expires; ALTER TABLE past DROP COLUMN expires; ALTER TABLE past ADD COLUMN expires TEXT NOT NULL DEFAULT ''`, postgres: `ALTER TABLE past ALTER expires TYPE text`, maria: `ALTER TABLE past MODIFY expires varchar(20) NOT NULL`, tables: "past", want: "column past.expires: it is"},
	{name: "type of creation", lite: `UPDATE log SET create_id = 'abc' WHERE id = 5`, postgres: noViews + `ALTER TABLE past ALTER create_id TYPE integer`, maria: `ALTER TABLE past MODIFY create_id int NOT NULL`, tables: "past log", want: "create_id"},
	{name: "NULLs allowed", lite: noViews + `ALTER TABLE author DROP COLUMN verb; ALTER TABLE author ADD COLUMN verb TEXT`, postgres: `ALTER TABLE log ALTER value DROP NOT NULL`, maria: `ALTER TABLE log MODIFY value longblob`, tables: "log", want: "should be"},
	{name: "key of other order", lite: `UPDATE log SET key = CAST(key AS BLOB) WHERE id = 5`, postgres: noViews + `ALTER TABLE past ALTER key TYPE text COLLATE "default"`, maria: "ALTER TABLE past MODIFY `key` varchar(200) NOT NULL", tables: "past log", want: "key"},
	{name: "short value", lite: `UPDATE log SET value = CAST(value AS TEXT) WHERE id = 5`, postgres: noViews + `ALTER TABLE meta ALTER value TYPE varchar(60)`, maria: `ALTER TABLE meta MODIFY value varbinary(60) NOT NULL`, tables: "meta log", want: "value"},
	{name: "fraction", lite: `UPDATE log SET at = at + 0.5 WHERE id = 5`, postgres: `ALTER TABLE past ALTER until_at TYPE double precision`, maria: `ALTER TABLE past MODIFY until_at double NOT NULL`, tables: "past log", want: "at"},
	{name: "no unique key of meta", lite: `UPDATE meta SET value = x'30' WHERE name = 'format'`, postgres: `ALTER TABLE meta DROP CONSTRAINT meta_pkey`, maria: `ALTER TABLE meta DROP PRIMARY KEY`, tables: "meta", want: "meta"},
	{name: "table that a crash empties", postgres: `ALTER TABLE log SET UNLOGGED`, maria: `ALTER TABLE past ENGINE = MyISAM`, tables: "past", want: "table "},
	{name: "of another program", lite: `UPDATE log SET deleted = 7 WHERE id = 5`, postgres: `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'log_key_id'::regclass`, maria: `ALTER TABLE lease ENGINE = MyISAM`, tables: "lease", want: ""},
	all("negative revision", `UPDATE log SET id = -5 WHERE id = 8`, "log", "revision -5 of"),
	all("no floor", `DELETE FROM meta WHERE name = 'floor'`, "meta", "meta: floor is"),
	all("no format", `DELETE FROM meta WHERE name = 'format'`, "meta", `meta: the format is ""`),
	all("another format", `UPDATE meta SET value = '7' WHERE name = 'format'`, "meta", `meta: the format is "7"`),
	all("no kind", `DELETE FROM meta WHERE name = 'kind'`, "meta", `meta: the kind is ""`),
	all("no cluster", `DELETE FROM meta WHERE name = 'cluster_id'`, "meta", "meta: there is no cluster id"),
	all("another cluster", `UPDATE meta SET value = 'x' WHERE name = 'cluster_id'`, "meta", `meta: the cluster id is "x"`),
	all("negative floor", `UPDATE meta SET value = '-3' WHERE name = 'floor'`, "meta", `meta: floor is "-3"`),
	all("kept from below", `INSERT INTO kept (prefix, lost) VALUES ('/registry/x', -3)`, "kept", "table kept: old versions"),
	all("kept of nothing", `INSERT INTO kept (prefix, lost) VALUES ('x', 3)`, "kept", "table kept: old versions"),
	all("key of nothing", `UPDATE log SET {key} = 'x' WHERE id = 20`, "log", "revision 20 of x"),
	all("a row twice", `INSERT INTO log (id, {key}, create_id, deleted, {at}, value) SELECT 50, {key}, create_id, deleted, {at}, value FROM log WHERE id = 21`, "log", "no deletion comes between"),
	all("empty log", `DELETE FROM log WHERE id <> 21`, "log", "is missing"),
	all("all times", `UPDATE log SET {at} = 0 WHERE id > 10`, "log", "ms older than"),
	all("no authors", `UPDATE log SET author = 77`, "log", "its author has number 77"),
	all("no row", `DELETE FROM log`, "log", "table log: it has no row"),
	all("newer in past", `INSERT INTO past (id, {key}, create_id, deleted, {at}, until_id, until_at, expires, value) SELECT 3, {key}, 3, deleted, {at}, 99, {at}, 0, value FROM log WHERE id = 4`, "past", "superseded at revision 99, and the newest one is"),
	{name: "no newest rows", lite: `DELETE FROM log WHERE id > 15`, tables: "log", want: "table log: revision 22 was written, and what is after revision 15 is missing"},
	{
		name: "a trigger", tables: "log", want: "trigger log.other: ",
		lite:     `CREATE TRIGGER other AFTER INSERT ON log BEGIN UPDATE log SET value = x'30' WHERE id = 5; END`,
		postgres: `CREATE TRIGGER other BEFORE UPDATE ON log FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
		maria:    "CREATE TRIGGER other BEFORE INSERT ON log FOR EACH ROW SET NEW.`at` = 0",
	},
	{name: "a rule", postgres: `CREATE RULE other AS ON DELETE TO past DO INSTEAD NOTHING`, tables: "past", want: "trigger past.other: "},
	all("rubbish in past", `INSERT INTO past (id, {key}, create_id, deleted, {at}, until_id, until_at, expires, value) VALUES (3, 'x', 3, {false}, 0, 99, 0, 0, {value '{'} )`, "past", "revision 3 of x"),
}

// TestEveryHarm does each harm to a database that is served, and looks whether it is noticed.
func TestEveryHarm(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		fresh := harmed(t, d)
		done := 0
		for _, h := range harms {
			query := strings.ReplaceAll(h.in(d.Name), "{false}", map[bool]string{true: "false", false: "0"}[d.Name == "postgres"])
			if strings.TrimSpace(query) == "" {
				continue
			}
			done++
			dsn, log, restore := fresh(h.tables)
			logtest.Exec(t, dsn, query)
			var problems []string
			report, err := Log(t.Context(), log, Options{Found: func(p Problem) { problems = append(problems, p.String()) }})
			if err != nil || report.Problems == 0 || !strings.Contains(strings.Join(problems, "\n"), h.want) {
				t.Errorf("%s: %v, found %q, want %q", h.name, err, problems, h.want)
			}
			restore()
		}
		_, log, restore := fresh("log")
		defer restore()
		if report, err := Log(t.Context(), log, Options{Found: func(p Problem) { t.Error(p) }}); err != nil || report.Problems > 0 {
			t.Errorf("without harm: %+v, %v", report, err)
		}
		if done < 40 {
			t.Errorf("%d kinds of harm are too few", done)
		}
	})
}

// harmed returns what gives a database with the rows of fill, a log that is open on it, and what mends the named
// tables and views afterwards. Databases are copies of one in SQLite, schemas of one in Postgres, and in MariaDB the
// same again and again: to make them takes the most time.
func harmed(t *testing.T, d logtest.Dialect) func(tables string) (string, changelog.Log, func()) {
	t.Helper()
	base := d.Fresh(t)
	switch d.Name {
	case "mariadb":
		log := openLog(t, base)
		fill(t, log)
		return mended(t, base, log)
	case "postgres":
		schemas := 0
		return func(string) (string, changelog.Log, func()) {
			schemas++
			name := fmt.Sprintf("s%d", schemas)
			logtest.Exec(t, base, "CREATE SCHEMA "+name)
			dsn := base + "&search_path=" + name
			log := openLog(t, dsn)
			fill(t, log)
			return dsn, log, func() { log.Close() }
		}
	}
	log := openLog(t, base)
	fill(t, log)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return func(string) (string, changelog.Log, func()) {
		dsn := copied(t, base)
		log := openLog(t, dsn)
		return dsn, log, func() { log.Close() }
	}
}

// copied returns the DSN of a copy of a SQLite database that nobody has open.
func copied(t *testing.T, base string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	all, err := os.ReadFile(strings.TrimPrefix(base, "sqlite://"))
	if err == nil {
		err = os.WriteFile(to, all, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "sqlite://" + to
}

// mended returns one database of MariaDB again and again, whose tables are put back from copies.
func mended(t *testing.T, dsn string, log changelog.Log) func(tables string) (string, changelog.Log, func()) {
	t.Helper()
	db, err := dbserver.OpenMySQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	must := func(query string) {
		t.Helper()
		if _, err := db.Exec(query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for _, name := range []string{"log", "meta", "past", "kept", "author", "lease", "schema_migrations"} {
		must("CREATE TABLE saved_" + name + " LIKE " + name)
		must("INSERT INTO saved_" + name + " SELECT * FROM " + name)
	}
	views := map[string]string{}
	for _, name := range []string{"objects", "history", "kv"} {
		var text, a, b string
		if err := db.QueryRow("SHOW CREATE VIEW "+name).Scan(new(string), &text, &a, &b); err != nil {
			t.Fatal(err)
		}
		views[name] = text
	}
	return func(tables string) (string, changelog.Log, func()) {
		return dsn, log, func() {
			for _, name := range strings.Fields(tables) {
				if view, ok := views[name]; ok {
					must(view)
					continue
				}
				must("DROP TABLE IF EXISTS " + name)
				must("CREATE TABLE " + name + " LIKE saved_" + name)
				must("INSERT INTO " + name + " SELECT * FROM saved_" + name)
			}
		}
	}
}

// TestNoMeta looks at databases whose table meta is empty: the error says so, and not that they are away.
func TestNoMeta(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		log := openLog(t, dsn)
		fill(t, log)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		logtest.Exec(t, dsn, `DELETE FROM meta`)
		source, err := dialects.Peek(t.Context(), dsn, dialects.Options{})
		if err == nil {
			source.Close()
		}
		if !errors.Is(err, changelog.ErrDamaged) || errors.Is(err, changelog.ErrUnavailable) || !strings.Contains(err.Error(), "table meta") {
			t.Errorf("peek: %v", err)
		}
	})
}
