package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// onWait calls f when a server says that it waits for its database.
func onWait(f func()) *slog.Logger { return slog.New(slog.NewTextHandler(waitWriter(f), nil)) }

type waitWriter func()

func (f waitWriter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("waiting for the database")) {
		f()
	}
	return len(line), nil
}

// A server that is started before its database waits for it.
func TestDatabaseComesLater(t *testing.T) {
	db := logtest.StartPostgres(t)
	dsn := logtest.CreateDatabase(t, db)
	db.Stop()
	if err := New(Config{DSN: dsn}).Open(t.Context()); !errors.Is(err, changelog.ErrUnavailable) {
		t.Fatalf("without waiting: %v", err)
	}
	waiting := make(chan struct{}, 1)
	s := New(Config{DSN: dsn, DatabaseTimeout: 20 * time.Minute, Log: onWait(func() {
		select {
		case waiting <- struct{}{}:
		default:
		}
	})})
	opened := make(chan error, 1)
	go func() { opened <- s.Open(context.Background()) }()
	<-waiting
	must(t, db.Start())
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
	s := New(Config{DSN: dsn, DatabaseTimeout: time.Hour, Log: onWait(cancel)})
	if err := s.Open(ctx); err == nil {
		t.Fatal("opened a database that is not there")
	}
}

// A failed Open leaves no listener behind, and ends what it has begun.
func TestOpenFails(t *testing.T) {
	first := start(t, Config{})
	taken := strings.TrimPrefix(first.URL(), "https://")
	if err := New(Config{Listen: taken}).Open(t.Context()); err == nil || errors.Is(err, ErrConfig) {
		t.Errorf("on a port that is taken: %v", err)
	}
	s := New(Config{DSN: "sqlite://" + filepath.Join(t.TempDir(), "a", "b")})
	blocked := filepath.Dir(strings.TrimPrefix(s.config.DSN, "sqlite://"))
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err == nil {
		t.Fatal("opened a database below a file")
	}
	if _, err := s.listener.Accept(); err == nil {
		t.Error("the listener is still open")
	}
	s = New(Config{KubeletCA: filepath.Join(t.TempDir(), "none")})
	if err := s.Open(t.Context()); !errors.Is(err, ErrConfig) {
		t.Errorf("without the authority of kubelets: %v", err)
	}
	if s.authenticator == nil || s.ctx.Err() == nil {
		t.Error("what authenticates users goes on")
	}
}
