package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// A server that is started before its database waits for it.
func TestDatabaseComesLater(t *testing.T) {
	db := logtest.StartPostgres(t)
	dsn := logtest.CreateDatabase(t, db)
	db.Stop()
	if err := New(Config{DSN: dsn}).Open(t.Context()); !errors.Is(err, sqlstore.ErrUnavailable) {
		t.Fatalf("without waiting: %v", err)
	}
	waiting := make(chan struct{}, 1)
	s := New(Config{DSN: dsn, DatabaseTimeout: time.Minute, Logf: func(format string, args ...any) {
		t.Logf(format, args...)
		select {
		case waiting <- struct{}{}:
		default:
		}
	}})
	opened := make(chan error, 1)
	go func() { opened <- s.Open(context.Background()) }()
	<-waiting
	db.Start()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A wait for the database ends with the context.
func TestDatabaseNeverComes(t *testing.T) {
	db := logtest.StartPostgres(t)
	dsn := logtest.CreateDatabase(t, db)
	db.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	s := New(Config{DSN: dsn, DatabaseTimeout: time.Hour, Logf: func(string, ...any) { cancel() }})
	if err := s.Open(ctx); err == nil {
		t.Fatal("opened a database that is not there")
	}
}
