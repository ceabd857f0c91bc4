package logtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// originBytes are the bytes of a row that say who has written it, without the room that its pages leave
// free. SQLite's record format has integers of 1, 2 or 3 bytes, and InnoDB's a byte for the length of a
// short text; the types of the columns are there in either case.
var originBytes = map[string]string{
	"sqlite": `SELECT avg(length(audit_id) + CASE WHEN author < 128 THEN 1 WHEN author < 32768 THEN 2 ELSE 3 END) FROM log`,
	"postgres": `SELECT avg(pg_column_size(l.*) - pg_column_size(ROW(
		id, key, create_id, deleted, at, value, NULL::bigint, NULL::bigint, NULL::integer, NULL::bytea))) FROM log AS l`,
	"mariadb": `SELECT avg(4 + 1 + length(audit_id)) FROM log`,
}

// TestOriginRow measures by how many bytes a row itself grows that says who has written it.
func TestOriginRow(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		query, ok := originBytes[db.name]
		if !ok {
			return // nobody else can look into a database in memory
		}
		const rows = 1000
		s, err := object.Open(t.Context(), openDSN(t, db.dsn), sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range rows {
			origin := &changelog.Origin{AuditID: uuid.NewString(), Author: changelog.Author{User: fmt.Sprint("system:node:", i%200), Verb: "patch", Subresource: "status", Manager: "kubelet"}}
			_, err := s.Commit(sqlstore.WithOrigin(t.Context(), origin), sqlstore.Change{
				Key:   fmt.Sprintf("/registry/core/configmaps/default/%06d", i),
				Value: []byte(`{"metadata":{"name":"` + strings.Repeat("x", i%97) + `"}}`),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var grown float64
		if err := db.sql(t).QueryRow(query).Scan(&grown); err != nil {
			t.Fatal(err)
		}
		t.Logf("%.1f bytes", grown)
		if grown < 16 || grown > 24 {
			t.Errorf("a row grows by %.1f bytes", grown)
		}
	})
}

// TestOriginSize measures by how many bytes the table grows for a row that says who has written it: 20 to 25 where
// pages do not hide it. Few rows make the figure uncertain, more so in MariaDB, whose table grows by whole MiB. Authors
// are there once for all rows, and do not count.
func TestOriginSize(t *testing.T) {
	const rows = 20_000
	var authors []changelog.Author
	for i := range 300 {
		authors = append(authors, changelog.Author{User: fmt.Sprint("system:node:", i), Verb: "patch", Subresource: "status", Manager: "kubelet"})
	}
	for _, d := range Dialects {
		t.Run(d.Name, func(t *testing.T) {
			size := func(origin func(i int) *changelog.Origin) int64 {
				dsn := d.Fresh(t)
				log := openDSN(t, dsn)
				s, err := object.Open(t.Context(), log, sqlstore.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := log.AddAuthors(t.Context(), authors); err != nil {
					t.Fatal(err)
				}
				var writers errgroup.Group
				writers.SetLimit(64)
				for i := range rows {
					writers.Go(func() error {
						_, err := s.Commit(sqlstore.WithOrigin(context.Background(), origin(i)), sqlstore.Change{
							Key:   fmt.Sprintf("/registry/core/configmaps/default/%06d", i),
							Value: []byte(`{"metadata":{"name":"` + strings.Repeat("x", 50+i*7919%900) + `"}}`),
						})
						return err
					})
				}
				if err := writers.Wait(); err != nil {
					t.Fatal(err)
				}
				if err := log.Defragment(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil { // SQLite's write-ahead log is part of the size, and is not cut as long as somebody reads
					t.Fatal(err)
				}
				log = openDSN(t, dsn)
				defer log.Close()
				n, err := log.Size(t.Context())
				if err != nil || n.Rows != rows {
					t.Fatalf("%+v, %v", n, err)
				}
				return n.Bytes
			}
			without := size(func(int) *changelog.Origin { return nil })
			with := size(func(i int) *changelog.Origin {
				return &changelog.Origin{AuditID: uuid.NewString(), Author: authors[i%len(authors)]}
			})
			grown := float64(with-without) / rows
			t.Logf("%.1f bytes", grown)
			if grown > 32 {
				t.Errorf("a row grows by %.1f bytes", grown)
			}
		})
	}
}
