package scrub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	. "github.com/plinth-io/plinth/sqlstore/scrub"
)

const prefix = "/registry/core/configmaps/default/"

func value(name string) []byte {
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"}}`, name)
}

// fill makes a log of ten objects, each of which was changed once; c3 was deleted and made again. It
// has 22 rows, of which revision 11 is the change of c0.
func fill(t testing.TB, log changelog.Log) {
	t.Helper()
	write := func(name string, expect int64, deletes bool) {
		a, err := log.Append(t.Context(), []changelog.Change{{Key: prefix + name, Expect: expect, Value: value(name), Delete: deletes}})
		if err != nil || a.Results[0].Revision == 0 {
			t.Fatalf("write %s: %+v, %v", name, a, err)
		}
	}
	if _, err := log.AddAuthors(t.Context(), []changelog.Author{{User: "anna"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		write(fmt.Sprintf("c%d", i), 0, false)
	}
	for i := range 10 {
		write(fmt.Sprintf("c%d", i), int64(i+1), false)
	}
	write("c3", 14, true)
	write("c3", 0, false)
}

func openLog(t testing.TB, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(context.Background(), dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// scrub returns the problems of a log as text.
func scrub(t testing.TB, dsn string) (r Report, problems []string) {
	t.Helper()
	source, err := dialects.Peek(t.Context(), dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	r, err = Log(t.Context(), source, Options{Found: func(p Problem) { problems = append(problems, p.String()) }})
	if err != nil {
		t.Fatal(err)
	}
	if int(r.Problems) != len(problems) {
		t.Errorf("%d problems are %q", r.Problems, problems)
	}
	return r, problems
}

// A log without damage has no problems, whatever of it is compacted.
func TestSound(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		log := openLog(t, dsn)
		if r, problems := scrub(t, dsn); r.Rows != 0 || problems != nil {
			t.Errorf("an empty log: %+v, %q", r, problems)
		}
		fill(t, log)
		want := Report{Head: changelog.Head{Revision: 22}, Rows: 22, Objects: 10, Bytes: int64(22 * len(value("c0")))}
		if r, problems := scrub(t, dsn); r != want || problems != nil {
			t.Errorf("%+v, want %+v; %q", r, want, problems)
		}
		for through := int64(1); through < 22; through += 5 {
			if _, err := log.Compact(t.Context(), through, 100, nil); err != nil {
				t.Fatal(err)
			}
			if r, problems := scrub(t, dsn); r.Objects != 10 || r.Head.Floor != through || problems != nil {
				t.Errorf("compacted up to %d: %+v, %q", through, r, problems)
			}
		}
		if err := log.Raise(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		if r, problems := scrub(t, dsn); r.Objects != 10 || r.Head.Revision != 1000 || problems != nil {
			t.Errorf("raised: %+v, %q", r, problems)
		}
	})
}

// damages are what somebody does to a log, and what is found. {key} and {at} are the columns of that
// name, which MySQL wants quoted; {value} is what makes bytes of a text.
var damages = []struct {
	name, sql string
	compacted bool // the log is compacted up to 12 before
	want      []string
}{
	{"cut JSON", `UPDATE log SET value = {value '{"kind":"ConfigMap","apiVersion":"v1","metadata":{'} WHERE id = 5`, false, []string{"revision 5 of /registry/core/configmaps/default/c4: it is no JSON: byte 50 of 50 is wrong"}},
	{"other name", `UPDATE log SET value = (SELECT value FROM (SELECT * FROM log) AS o WHERE id = 7) WHERE id = 6`, false, []string{`revision 6 of /registry/core/configmaps/default/c5: it has another name than its key says`}},
	{"other namespace", `UPDATE log SET value = {value '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c5","namespace":"x"}}'} WHERE id = 6`, false, []string{`it is in another namespace than its key says`}},
	{"a revision", `UPDATE log SET value = {value '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"6","name":"c5","namespace":"default"}}'} WHERE id = 6`, false, []string{`it has a resourceVersion, which only the row may have`}},
	{"order of fields", `UPDATE log SET value = {value '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c5","namespace":"default"}}'} WHERE id = 6`, false, []string{`its fields are not in the order`}},
	{"no JSON", `UPDATE log SET value = {value 'hello'} WHERE id = 2`, false, []string{`revision 2 of /registry/core/configmaps/default/c1: its value is neither JSON nor encrypted`}},
	{"empty", `UPDATE log SET value = {value ''} WHERE id = 2`, false, []string{"it has no value"}},
	{"time", `UPDATE log SET {at} = {at} - 100000 WHERE id = 9`, false, []string{"revision 9 of /registry/core/configmaps/default/c8: it is "}},
	{"no creation", `DELETE FROM log WHERE id = 4`, false, []string{"revision 14 of /registry/core/configmaps/default/c3: the revision before it is missing: its object was created at 4, and only what is below 0 is compacted"}},
	{"no deletion", `DELETE FROM log WHERE id = 21`, false, []string{"revision 22 of /registry/core/configmaps/default/c3: it is of an object created at revision 22, and no deletion comes between it and revision 14 of one created at 4"}},
	{"not the same object", `UPDATE log SET create_id = 11 WHERE id = 11`, false, []string{"revision 11 of /registry/core/configmaps/default/c0: it is of an object created at revision 11"}},
	{"revived", `UPDATE log SET create_id = 4 WHERE id = 22`, false, []string{"revision 22 of /registry/core/configmaps/default/c3: its object was deleted at revision 21, and it is not a new one"}},
	{"created later", `UPDATE log SET create_id = 99 WHERE id = 20`, false, []string{"revision 20 of /registry/core/configmaps/default/c9: it says that its object was created at revision 99", "revision 20 of /registry/core/configmaps/default/c9: it is of an object created at revision 99"}},
	{"no author", `UPDATE log SET author = 77 WHERE id = 20`, false, []string{"its author has number 77, which nobody has"}},
	{"floor", `UPDATE meta SET value = 'x' WHERE name = 'swept'`, false, []string{`meta: swept is "x", not a revision`}},
	{"swept", `UPDATE meta SET value = '20' WHERE name = 'swept'`, false, []string{`meta: what is up to revision 20 is deleted, and only what is below 0 is compacted`}},
	{"half a copy", `INSERT INTO meta (name, value) VALUES ('mark/copying', 'x')`, false, []string{"meta: the database holds a part of a copy that was not finished"}},
	{"lost above the floor", `DELETE FROM log WHERE id = 4 OR id = 14`, true, []string{"revision 21 of /registry/core/configmaps/default/c3: the revision before it is missing"}},
	{"key", `UPDATE log SET {key} = {keyvalue '/registry/core/configmaps/default/zz'} WHERE id = 20`, false, []string{`revision 20 of /registry/core/configmaps/default/zz: it has another name than its key says`, "revision 20 of /registry/core/configmaps/default/zz: the revision before it is missing"}},
}

// An object whose key no request names is found. A row that says that it was deleted ends it, as docs/operations.md says.
func TestUnreachable(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		log := openLog(t, dsn)
		fill(t, log)
		for _, name := range []string{"y/z", "y/", ""} {
			logtest.Exec(t, dsn, inDialect(d.Name, `UPDATE log SET create_id = 20, deleted = FALSE, {key} = {keyvalue '`+prefix+name+`'} , value = {value '`+string(value(name))+`'} WHERE id = 20`))
			_, problems := scrub(t, dsn)
			if want := []string{"revision 20 of " + prefix + name + ": no resource reads this key: behind the resource it has another number of segments than one or two"}; !slices.Equal(problems, want) {
				t.Errorf("%q: %q", name, problems)
			}
			logtest.Exec(t, dsn, `UPDATE log SET deleted = TRUE WHERE id = 20`)
			if _, problems := scrub(t, dsn); len(problems) > 0 {
				t.Errorf("%q, deleted: %q", name, problems)
			}
		}
		store, err := object.Open(t.Context(), log, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Damage that somebody has done with SQL is found, and nothing else.
func TestDamage(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		for _, damage := range damages {

			dsn := d.Fresh(t)
			log := openLog(t, dsn)
			fill(t, log)
			if damage.compacted {
				if _, err := log.Compact(t.Context(), 12, 100, nil); err != nil {
					t.Fatal(err)
				}
			}
			logtest.Exec(t, dsn, inDialect(d.Name, damage.sql))
			_, problems := scrub(t, dsn)
			ok := len(problems) == len(damage.want)
			for _, want := range damage.want {
				ok = ok && slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) })
			}
			if !ok {
				t.Errorf("%s: found %q, want %q", damage.name, problems, damage.want)
			}
			if err := log.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// inDialect fills in what differs.
func inDialect(name, query string) string {
	quote := ""
	if name == "mariadb" {
		quote = "`"
	}
	query = strings.ReplaceAll(strings.ReplaceAll(query, "{key}", quote+"key"+quote), "{at}", quote+"at"+quote)
	for {
		before, rest, ok := strings.Cut(query, "{value '")
		if !ok {
			break
		}
		text, after, _ := strings.Cut(rest, "'} ")
		literal := "X'" + fmt.Sprintf("%x", text) + "'"
		if name == "postgres" {
			literal = `'\x` + fmt.Sprintf("%x", text) + `'::bytea`
		}
		query = before + literal + " " + after
	}
	return strings.ReplaceAll(strings.ReplaceAll(query, "{keyvalue '", "'"), "'} ", "' ")
}

// The view is compared with the rows.
func TestDamagedView(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		fill(t, openLog(t, dsn))
		logtest.Exec(t, dsn, `DROP VIEW objects`)
		logtest.Exec(t, dsn, `CREATE VIEW objects AS SELECT id AS resource_version FROM log WHERE id <> 19 AND id > 10`)
		_, problems := scrub(t, dsn)
		want := []string{
			"the view objects shows 11 objects (sum of revisions 179), and 10 (163) are in force",
			"view objects: it is resource_version, and should be api_version, kind, namespace, name, resource_version, created_at, updated_at, object, key",
		}
		if !slices.Equal(problems, want) {
			t.Errorf("%q, want %q", problems, want)
		}
	})
}

// A SQLite index that has lost a row does not lead to what the table has.
func TestDamagedIndex(t *testing.T) {
	dsn := logtest.SQLite(t)
	fill(t, openLog(t, dsn))
	logtest.Exec(t, dsn, `
		CREATE TABLE other (key TEXT NOT NULL COLLATE BINARY, id INTEGER NOT NULL);
		CREATE UNIQUE INDEX other_key_id ON other (key, id);
		INSERT INTO other (key, id) SELECT key, id FROM log WHERE id <> 20;
		PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'other_key_id') WHERE name = 'log_key_id'`)
	_, problems := scrub(t, dsn)
	if len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), "the index of keys leads to 21 rows") {
		t.Errorf("%q", problems)
	}
}

// Keys of an etcd endpoint are no objects.
func TestOtherKind(t *testing.T) {
	log, err := dialects.Open(t.Context(), "sqlite://:memory:", dialects.Options{Kind: changelog.KindEtcd})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := Log(t.Context(), log, Options{}); !errors.Is(err, changelog.ErrKind) {
		t.Error(err)
	}
}

// Damage of what is kept beside the log is found.
func TestDamagedPast(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		log := openLog(t, dsn)
		fill(t, log)
		if _, err := log.Compact(t.Context(), 21, 100, changelog.NewRetention(changelog.Rule{Resource: "*", For: changelog.KeepForever})); err != nil {
			t.Fatal(err)
		}
		if r, problems := scrub(t, dsn); r.Rows != 10 || r.Old != 12 || problems != nil {
			t.Errorf("%+v, %q", r, problems)
		}
		for _, damage := range []string{
			`UPDATE past SET until_id = 1 WHERE id = 4`,
			`UPDATE past SET author = 77 WHERE id = 5`,
			`UPDATE past SET create_id = 99 WHERE id = 6`,
			`UPDATE past SET value = {value 'hello'} WHERE id = 7`,
			`DELETE FROM log WHERE id = 20`,
		} {
			logtest.Exec(t, dsn, inDialect(d.Name, damage))
		}
		_, problems := scrub(t, dsn)
		want := []string{
			prefix + "c3: it says that it was superseded at revision 1",
			prefix + "c4: its author has number 77, which nobody has",
			prefix + "c5: it says that its object was created at revision 99",
			prefix + "c6: its value is neither JSON nor encrypted",
		}
		for i := range want {
			want[i] = fmt.Sprintf("revision %d of %s", i+4, want[i])
		}
		want = append(want,
			"revision 4 of "+prefix+"c3: the version that superseded it is missing",
			"revision 10 of "+prefix+"c9: the version that superseded it is missing")
		if !slices.Equal(problems, want) {
			t.Errorf("%q, want %q", problems, want)
		}
	})
}

// The view history is compared with both tables.
func TestDamagedHistory(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		fill(t, openLog(t, dsn))
		logtest.Exec(t, dsn, `DROP VIEW history`)
		logtest.Exec(t, dsn, `CREATE VIEW history AS SELECT id AS revision FROM log WHERE id > 3`)
		_, problems := scrub(t, dsn)
		if want := "the view history has 19 changes (sum of revisions 247), and the tables have 22 (253)"; len(problems) != 2 || problems[0] != want {
			t.Errorf("%q, want %q, and that the view lacks columns", problems, want)
		}
	})
}

// TestMemory compares the log with what a server may have in memory.
func TestMemory(t *testing.T) {
	log := openLog(t, logtest.SQLite(t))
	fill(t, log)
	var stored sqlstore.Digest
	err := log.Freeze(t.Context(), func(z changelog.Frozen) (err error) {
		stored, err = object.Digest(t.Context(), z, nil)
		return err
	})
	if err != nil || stored.Objects != 10 || stored.Revision != 22 {
		t.Fatalf("%+v, %v", stored, err)
	}
	other := stored
	other.Sum[3]++
	for name, c := range map[string]struct {
		memory   sqlstore.Digest
		err      error
		problems int64
	}{
		"the same": {memory: stored}, "another": {memory: other, problems: 1}, "not known any more": {err: changelog.ErrCompacted},
	} {
		report, err := Log(t.Context(), log, Options{
			Memory: func(_ context.Context, revision int64) (sqlstore.Digest, error) {
				if revision != 22 {
					t.Errorf("%s: asked for revision %d", name, revision)
				}
				return c.memory, c.err
			},
			Found: func(p Problem) {
				if !strings.Contains(p.String(), "this server has 10 objects with digest "+other.Text()) {
					t.Errorf("%s: %s", name, p)
				}
			},
		})
		if err != nil || report.Problems != c.problems || c.err == nil && report.Digest != stored {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}
