package alarms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// desk has the facts of a test and what was told.
type desk struct {
	facts  Facts
	told   []string
	broken error
	log    strings.Builder
}

func (d *desk) watch() *Watch {
	return New(Config{
		Facts: func() Facts { return d.facts },
		Tell: func(_ context.Context, c Change) error {
			if d.broken == nil {
				d.told = append(d.told, fmt.Sprint(c.Reason, c.Begins))
			}
			return d.broken
		},
		Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
	})
}

// An alarm begins at once or when its condition has held, is told once, and ends when its condition has
// been over for a while.
func TestWatch(t *testing.T) {
	var d desk
	w, now := d.watch(), time.Now()
	look := func(after time.Duration) {
		now = now.Add(after)
		w.look(t.Context(), now)
	}
	names := func() (all []string) {
		for _, a := range w.Active() {
			all = append(all, a.Name)
		}
		return all
	}
	expect := func(when string, alarms, told []string) {
		t.Helper()
		if diff := cmp.Diff(alarms, names()) + cmp.Diff(told, d.told); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", when, diff)
		}
	}
	look(0)
	expect("at first", nil, nil)
	d.facts.Lag = lagLong
	look(every)
	began := []string{"ReplicaLagtrue"}
	expect("late", []string{"replica_lag"}, began)
	look(every)
	d.facts.Lag = 0
	look(clearFor - time.Second)
	expect("over for less than it takes", []string{"replica_lag"}, began)
	if got := w.Warnings(); len(got) != 1 || !strings.HasPrefix(got[0], "alarm replica_lag: ") {
		t.Errorf("warnings %q", got)
	}
	d.facts.Lag = lagLong
	look(every)
	d.facts.Lag = 0
	look(clearFor - time.Second)
	expect("it came back", []string{"replica_lag"}, began)
	d.broken = errors.New("away")
	look(every)
	expect("it ends while no event can be made", nil, began)
	d.broken = nil
	look(every)
	ended := append(began, "ReplicaLagfalse")
	expect("it is told that it has ended", nil, ended)
	look(every)
	expect("nothing is told twice", nil, ended)
	if n := strings.Count(d.log.String(), "\n"); n != 2 {
		t.Errorf("%d records:\n%s", n, &d.log)
	}
}

// Every alarm has a series, and the facts that make it ring.
func TestAlarms(t *testing.T) {
	now := time.Now()
	ringing := map[string]Facts{
		"disk_low":          {Disks: []Disk{{"the database", 1 << 30, 1 << 40}, {"small", 99 << 20, 500 << 20}}},
		"compaction_behind": {CompactionBehind: compactionLate},
		"replica_lag":       {Lag: lagLong},
		"certificate_ends":  {Certificates: map[string]time.Time{"ca": now.Add(2 * certificateSoon), "admin": now.Add(certificateSoon - time.Hour)}},
		"database_slow":     {Recent: Recent{Counts: Counts{Transactions: transactionsFew, TransactionTime: transactionsFew * transactionSlow}}},
		"backup_fails":      {Backups: Backups{Every: time.Hour, Success: now.Add(-2 * time.Hour), Failure: now.Add(-time.Minute)}},
		"damage":            {Damage: 1},
		"unreadable":        {Unreadable: "1 of roles"},
		"component_down":    {Components: "kube-scheduler has ended"},
		"config_refused":    {Files: []string{"authorization configuration"}},
	}
	quiet := Facts{
		Disks:            []Disk{{"large", 1 << 30, 1 << 40}, {"small", 100 << 20, 500 << 20}, {"unknown", -1, -1}},
		CompactionBehind: compactionLate - 1, Lag: lagLong - 1,
		Certificates: map[string]time.Time{"ca": now.Add(certificateSoon)},
		Recent:       Recent{Counts: Counts{Transactions: transactionsFew - 1, TransactionTime: time.Minute}},
		Backups:      Backups{Every: time.Hour, Failure: now.Add(-3 * time.Hour)},
	}
	for _, a := range All {
		f, known := ringing[a.Name]
		if detail := a.check(&f, now); !known || detail == "" {
			t.Errorf("%s does not ring by %+v", a.Name, f)
		}
		if detail := a.check(&quiet, now); detail != "" {
			t.Errorf("%s rings: %s", a.Name, detail)
		}
		for name, other := range ringing {
			if detail := a.check(&other, now); name != a.Name && detail != "" {
				t.Errorf("%s rings by the facts of %s: %s", a.Name, name, detail)
			}
		}
	}
	lost := Facts{Lag: lagLong, Lost: Loss{now, errors.New("write: read-only")}}
	if detail := checkLag(&lost, now); !strings.Contains(detail, "cannot be used since "+now.UTC().Format(time.RFC3339)+": write: read-only") {
		t.Errorf("a replica that cannot write: %s", detail)
	}
	var d desk
	d.facts = ringing["damage"]
	w := d.watch()
	w.look(t.Context(), now)
	if n := testutil.CollectAndCount(w, "plinth_alarm"); n != len(All) {
		t.Errorf("%d series of %d alarms", n, len(All))
	}
}

// The database counts as slow when it has been for a minute.
func TestDatabaseSlow(t *testing.T) {
	var d desk
	w, now := d.watch(), time.Now()
	for range 11 { // a minute, from the second look on
		d.facts.Counts.Transactions += 2
		d.facts.Counts.TransactionTime += 2 * transactionSlow
		w.look(t.Context(), now)
		now = now.Add(every)
	}
	if len(w.Active()) > 0 {
		t.Errorf("before a minute: %+v", w.Active())
	}
	for range 5 {
		d.facts.Counts.Transactions += 2
		d.facts.Counts.TransactionTime += 2 * transactionSlow
		w.look(t.Context(), now)
		now = now.Add(every)
	}
	if len(w.Active()) != 1 || w.Recent().Transaction() != transactionSlow || w.Recent().Over != recently {
		t.Errorf("%+v, %+v", w.Active(), w.Recent())
	}
}

// Run looks at intervals until its context ends.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		w := New(Config{Facts: func() Facts { looks++; return Facts{} }, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*every+time.Second)
		defer cancel()
		w.Run(ctx)
		if looks != 11 {
			t.Errorf("%d looks", looks)
		}
	})
}
