package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
)

// A start that waits for its database says so, again and again, and what is wrong with it.
func TestWaitingIsTold(t *testing.T) {
	db := logtest.StartPostgres(t)
	dsn := logtest.CreateDatabase(t, db)
	db.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log apitest.Lines
	s := New(Config{DSN: dsn, DatabaseTimeout: time.Hour, Log: log.Log()})
	s.tellEvery = 10 * time.Millisecond
	ended := make(chan error, 1)
	go func() { ended <- s.Open(ctx) }()
	log.Wait(t, `(?s)level=INFO msg=starting .*(level=WARN msg="waiting for the database" err=".*connection refused.*" remaining=5[0-9]m.*){3}`)
	cancel()
	if err := <-ended; err == nil {
		t.Error("opened a database that is not there")
	}
	if strings.Contains(log.All(), "msg=stopped") || strings.Contains(log.All(), "msg=ready") {
		t.Errorf("logged\n%s", log.All())
	}
}

func TestSlowStart(t *testing.T) {
	var log apitest.Lines
	p := &progress{logger: log.Log(), begun: time.Now()}
	p.at("count sheep")
	done := make(chan struct{})
	var repeating sync.WaitGroup
	repeating.Go(func() { p.repeat(done, time.Millisecond) })
	log.Wait(t, `(msg="still starting" step="count sheep" since=[^\n]*\n.*){2}`)
	close(done)
	repeating.Wait()
	p.waits(errors.New("away"), time.Now().Add(-time.Second))
	p.at("count goats")
	p.tell()
	log.Wait(t, `(?s)msg="waiting for the database" err=away remaining=0s\n.*step="count goats"`)
}

// What a server serves stands in its log, and what its stop cut off.
func TestReadyAndCutOff(t *testing.T) {
	var log apitest.Lines
	s := New(Config{Linger: time.Millisecond, ShutdownTimeout: 50 * time.Millisecond, Controllers: []string{}, Log: log.Log()})
	begun := make(chan struct{})
	route("/slow", func(c echo.Context) error {
		close(begun)
		<-c.Request().Context().Done()
		return nil
	})(s)
	idle(s) // its own requests would be cut off, too
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.Wait(t, `level=INFO msg=ready url=https://127\.0\.0\.1:\d+ database=sqlite://:memory: new=true dataDir="" controllers=0 objects=[1-9]\d* revision=[1-9]\d* took=`)
	settle(t, s)
	client := apitest.Admin(t, s)
	go func() { _, _ = client.Get(s.URL() + "/slow") }()
	<-begun
	if err := s.Close(); err == nil {
		t.Error("a request that was cut off is no error")
	}
	log.Wait(t, `level=WARN msg=stopped took=\S+ revision=\d+ cutOff=1 err=`)
}
