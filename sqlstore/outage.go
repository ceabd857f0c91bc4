package sqlstore

import (
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	// conditionEvery is how often a Store looks at the log's Condition, so that a lost
	// database is logged while the Store is idle, too.
	conditionEvery = time.Second
	// outageEvery is the shortest time between two records that the database is lost, so
	// that one which comes and goes does not fill the log.
	outageEvery = 10 * time.Second
)

// outagesKept is how many outages a Store remembers.
const outagesKept = 8

// Outage is a time in which the database could not be used.
type Outage struct {
	Since, Until time.Time // Until is zero while it goes on
	Err          error     // of its beginning
}

// outage logs when the database is lost and when it is back, and the same of the room on
// its disk, once each. It is guarded by health.mu.
type outage struct {
	log      *slog.Logger
	since    time.Time // when the database was lost; zero if it can be used
	logged   bool      // that it is lost
	loggedAt time.Time // when that was logged last
	full     bool      // the disk, as logged
	past     []Outage  // the newest ones, newest last
	count    *atomic.Int64
}

// note logs what has changed. condition is Log.Condition, err the error of the last read or write.
// condition comes first, because it says more.
func (o *outage) note(condition, err error) {
	full := errors.Is(condition, changelog.ErrFull)
	if condition != nil && !full {
		err = condition
	} else {
		o.noteFull(full, condition)
	}
	if err == nil {
		o.ended()
		return
	}
	if o.since.IsZero() {
		o.began(err)
	}
	if !o.logged && time.Since(o.loggedAt) >= outageEvery {
		o.logged, o.loggedAt = true, time.Now()
		o.log.Error(lostMessage(err), "err", err)
	}
}

func lostMessage(err error) string {
	if errors.Is(err, changelog.ErrMoved) {
		return "all writes are refused, and reads are of the past: stop this plinth, and start plinth on the database that this one has moved to"
	}
	return "database cannot be used; reads go on from memory, writes are refused until it is back"
}

func (o *outage) ended() {
	if o.logged {
		o.log.Info("database can be used again", "after", time.Since(o.since))
	}
	if n := len(o.past); n > 0 && o.past[n-1].Until.IsZero() {
		o.past[n-1].Until = time.Now()
	}
	o.since, o.logged = time.Time{}, false
}

func (o *outage) began(err error) {
	o.since = time.Now()
	o.count.Add(1)
	if len(o.past) == outagesKept {
		o.past = slices.Delete(o.past, 0, 1)
	}
	o.past = append(o.past, Outage{Since: o.since, Err: err})
}

func (o *outage) noteFull(full bool, condition error) {
	if full == o.full {
		return
	}
	o.full = full
	if full {
		o.log.Error("only deletes are taken", "err", condition)
		return
	}
	o.log.Info("there is room for the database again: all writes are taken")
}
