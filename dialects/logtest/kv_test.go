package logtest

import (
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestKV reads the view of an etcd endpoint's keys.
func TestKV(t *testing.T) {
	type row struct {
		Key, Value                    string
		Create, Mod, Version, LeaseID int64
	}
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return // nobody else can look into it
		}
		l := db.openRaw(t)
		odd := "x\x00\x01\x01\xff\\ü"
		l.write(put("/a", "1"), put("/b", "2"), put(odd, "3"))
		l.write(op{key: "/a", value: "\x00\xff", lease: 9}, del("/b"))
		if db.name == "postgres" { // where text cannot have all bytes
			odd = "x\\000\x01\x01\\377\\\\\\303\\274"
		}
		var got []row
		rows, err := db.sql(t).Query(`SELECT * FROM kv ORDER BY create_revision, mod_revision DESC`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var r row
			if err := rows.Scan(&r.Key, &r.Value, &r.Create, &r.Mod, &r.Version, &r.LeaseID); err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		diff(t, "kv", []row{{"/a", "\x00\xff", 1, 2, 2, 9}, {odd, "3", 1, 1, 1, 0}}, got)
	})
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return
		}
		l := db.open(t)
		l.put("/registry/日本", 0, "{}")
		var n int
		if err := db.sql(t).QueryRow(`SELECT count(*) FROM (SELECT * FROM kv) AS all_of_them`).Scan(&n); err != nil || n != 0 {
			t.Errorf("an API's database has %d keys, %v", n, err)
		}
	})
}

// TestKVText reads values as text, as docs/etcd.md says.
func TestKVText(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return // nobody else can look into it
		}
		db.openRaw(t).write(put("/a", `{"b": "ü"}`))
		text := "CAST(value AS CHAR)"
		switch db.name {
		case "sqlite":
			text = "CAST(value AS TEXT)"
		case "postgres":
			text = "convert_from(value, 'UTF8')::json ->> 'b'"
		}
		var got string
		if err := db.sql(t).QueryRow("SELECT " + text + " FROM kv").Scan(&got); err != nil || got != `{"b": "ü"}` && got != "ü" {
			t.Errorf("%s is %q, %v", text, got, err)
		}
	})
}

// TestObjectsPages reads all objects page by page, in the range that has no end.
func TestObjectsPages(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		for i := range 20 {
			l.put(keyOf(i), 0, "x")
			l.put(keyOf(i)+"/ü\U0010ffff", 0, "x")
		}
		if rows := l.state("", changelog.End, l.head().Revision); len(rows) != 40 {
			t.Errorf("%d objects", len(rows))
		}
	})
}
