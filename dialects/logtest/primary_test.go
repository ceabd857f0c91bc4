package logtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/bench/way"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestHostSilent has the first of two hosts fall silent, without closing a connection, as a machine does that is
// switched off. The second one is found before the limit of the connections' establishment, and what waits
// for the first one is told that its outcome is unknown.
func TestHostSilent(t *testing.T) {
	t.Parallel()
	for range 10 {
		if hostFallsSilent(t) {
			return
		}
	}
	t.Error("no write was under way, ten times")
}

// hostFallsSilent tells whether a write was under way, and not the next one about to begin.
func hostFallsSilent(t *testing.T) (underWay bool) {
	t.Helper()
	dsn := Postgres(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var ways []*way.Way
	var hosts []string
	for range 2 {
		w, err := way.New(u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		ways, hosts = append(ways, w), append(hosts, w.Address())
	}
	u.Host = strings.Join(hosts, ",")
	l, err := dialects.Open(t.Context(), u.String(), dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	put := func(key string) error {
		_, err := l.Append(context.Background(), []changelog.Change{{Key: key, Value: []byte("x")}})
		return err
	}
	var written atomic.Int64
	var moved atomic.Bool
	waiting := make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			if moved.Load() {
				waiting <- nil
				return
			}
			if err := put(fmt.Sprint("/registry/", n)); err != nil {
				waiting <- err
				return
			}
			written.Add(1)
		}
	}()
	for written.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	ways[0].Block() // in the middle of a write
	begun := time.Now()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := l.Head(ctx)
		cancel()
		if err == nil {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal(err)
		}
	}
	found := time.Since(begun)
	moved.Store(true)
	err = <-waiting
	t.Logf("the second host was found after %v, and the write was answered after %v: %v", found, time.Since(begun), err)
	if err != nil && !errors.Is(err, changelog.ErrUnknown) {
		t.Errorf("what waited for the first host: %v", err)
	}
	underWay = err != nil
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("the second host was used after %v", took)
	}
	if err := put("/registry/after"); err != nil {
		t.Error(err)
	}
	begun = time.Now()
	l.Close()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("to close the log took %v", took)
	}
	return underWay
}

// TestHostStandby opens a log with hosts of which the first is a standby, and the second does not answer.
func TestHostStandby(t *testing.T) {
	t.Parallel()
	standby := StartPostgres(t)
	standby.Stop()
	if err := standby.StandBy(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Start(); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := url.Parse(standby.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	silent, err := way.New(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	silent.Block()
	u.Host = strings.Join([]string{s.Host, silent.Address(), u.Host}, ",")
	begun := time.Now()
	l, err := dialects.Open(t.Context(), u.String(), dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("to find the primary took %v", took)
	}
	if _, err := l.Append(t.Context(), []changelog.Change{{Key: "/registry/x", Value: []byte("x")}}); err != nil {
		t.Error(err)
	}
}

// TestHostOfOldTimeline has a host answer as the primary that has missed a promotion, while the primary is silent.
// It is not used.
func TestHostOfOldTimeline(t *testing.T) {
	t.Parallel()
	primary, old := StartPostgres(t), StartPostgres(t)
	dsn := CreateDatabase(t, primary)
	primary.Stop()
	if err := primary.StandBy(); err != nil {
		t.Fatal(err)
	}
	if err := primary.Start(); err != nil {
		t.Fatal(err)
	}
	Exec(t, primary.DSN(""), `SELECT pg_promote()`)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	Exec(t, old.DSN(""), `CREATE DATABASE `+u.Path[1:])
	o, err := url.Parse(old.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	w, err := way.New(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	other, err := way.New(o.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.Block() // else the log might be made there while the primary is slow
	u.Host = w.Address() + "," + other.Address()
	l, err := dialects.Open(t.Context(), u.String(), dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.Block()
	other.Unblock()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := l.Head(ctx); !errors.Is(err, changelog.ErrUnavailable) {
			t.Errorf("while the primary is silent: %v", err)
		}
		cancel()
	}
	w.Unblock()
	if _, err := l.Append(t.Context(), []changelog.Change{{Key: "/registry/x", Value: []byte("x")}}); err != nil {
		t.Errorf("when it goes on: %v", err)
	}
	w.Close()
	asked := func() bool { // it has no log
		_, err = l.Head(t.Context())
		return err != nil && strings.Contains(err.Error(), `relation "meta" does not exist`)
	}
	for begun := time.Now(); !asked(); {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("when the other one is all that is left: %v", err)
		}
	}
	if !errors.Is(err, changelog.ErrUnavailable) {
		t.Errorf("a database without a log may be being restored, and that is an outage: %v", err)
	}
}
