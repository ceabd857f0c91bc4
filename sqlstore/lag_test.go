package sqlstore_test

import (
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// A Store whose database is away is behind until the database is back, and says so.
func TestLag(t *testing.T) {
	log := newFaultyLog(t, fileDSN(t))
	log.shared = true
	s := openStore(t, log, Options{})
	create(t, s, maps+"ns/a")
	if _, err := s.Sync(t.Context()); err != nil || s.Lag() != 0 || len(s.Outages()) != 0 {
		t.Fatalf("at first: %v, lag %v, outages %v", err, s.Lag(), s.Outages())
	}
	log.away.Store(true)
	if _, err := s.Sync(t.Context()); err == nil {
		t.Fatal("the database is not away")
	}
	first := s.Lag()
	if first == 0 {
		t.Error("the database is away and reads lack nothing")
	}
	until(t, "the lag grows", func() bool { return s.Lag() > first })
	if all := s.Outages(); len(all) != 1 || all[0].Err == nil || !all[0].Until.IsZero() || s.Stats().Outages != 1 {
		t.Errorf("outages: %+v", all)
	}
	log.away.Store(false)
	until(t, "nothing is missing", func() bool { return s.Lag() == 0 })
	until(t, "the outage is over", func() bool { return !s.Outages()[0].Until.IsZero() })
}

// What another process has written is missing until it is read.
func TestLagOfRows(t *testing.T) {
	dsn := fileDSN(t)
	log := newFaultyLog(t, dsn)
	log.shared = true
	s := openStore(t, log, Options{})
	log.reads.Lock() // nothing can be read
	if _, err := log.Log.Append(t.Context(), []changelog.Change{{Key: maps + "ns/a", Value: value("a", 0)}}); err != nil {
		t.Fatal(err)
	}
	until(t, "the head tells of the row", func() bool { return s.Lag() > 0 })
	log.reads.Unlock()
	until(t, "the row is there", func() bool { return s.Get(maps+"ns/a") != nil && s.Lag() == 0 })
}
