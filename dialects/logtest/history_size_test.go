package logtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestOriginSize measures by how many bytes a row grows that says who has written it: 20 to 25 where pages do not
// hide it. Few rows make the figure uncertain, more so in MariaDB, whose table grows by whole MiB. Authors
// are there once for all rows, and do not count.
func TestOriginSize(t *testing.T) {
	const rows = 20_000
	var authors []sqlstore.Author
	for i := range 300 {
		authors = append(authors, sqlstore.Author{User: fmt.Sprint("system:node:", i), Verb: "patch", Subresource: "status", Manager: "kubelet"})
	}
	for _, d := range Dialects {
		t.Run(d.Name, func(t *testing.T) {
			size := func(origin func(i int) *sqlstore.Origin) int64 {
				log := openDSN(t, d.Fresh(t))
				s, err := object.Open(t.Context(), log, sqlstore.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
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
				n, err := log.Size(t.Context())
				if err != nil || n.Rows != rows {
					t.Fatalf("%+v, %v", n, err)
				}
				return n.Bytes
			}
			without := size(func(int) *sqlstore.Origin { return nil })
			with := size(func(i int) *sqlstore.Origin {
				return &sqlstore.Origin{AuditID: uuid.NewString(), Author: authors[i%len(authors)]}
			})
			grown := float64(with-without) / rows
			t.Logf("%.1f bytes", grown)
			if grown > 32 {
				t.Errorf("a row grows by %.1f bytes", grown)
			}
		})
	}
}
