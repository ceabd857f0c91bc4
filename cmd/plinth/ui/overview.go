package ui

import (
	"net/http"
	"slices"
	"sync"
	"time"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	serverstatus "github.com/plinth-io/plinth/server/status"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// overviewPage is the first page: how things are, and what changed of late.
type overviewPage struct {
	Changes []changeRow
	Deleted []changeRow
	Day     string // address of the chart's figures
	Kept    string
	Fault   *explained

	Status *serverstatus.Status // nil: the visitor may not read it, or the server has none
}

const (
	// overviewChanges and overviewDeleted are how many changes and deletions the first page shows.
	overviewChanges, overviewDeleted = 30, 8
	oneDay                           = 24 * time.Hour
)

// overview shows how things are. Its three requests run at once.
func (v *visit) overview() error {
	if kinds, err := v.conn.served(); err != nil && len(kinds) == 0 && explain(err).Code == http.StatusBadGateway {
		return err // there is nothing to show
	}
	f := filter{Namespace: v.namespace}
	var err error
	if f.Until, err = v.until(); err != nil {
		return err
	}
	b := overviewPage{Day: v.link("now/day")}
	var changes, deleted found
	var failed, deletedFailed error
	var asked sync.WaitGroup
	asked.Go(func() { b.Status, _ = v.status() }) // the page Server says why not
	asked.Go(func() { deleted, deletedFailed = v.again().deletedOfLate(f) })
	changes, failed = v.gather(limited(f.query().Without(historyv1.FieldSubresource, "status"), overviewChanges), "", overviewChanges)
	asked.Wait()
	for _, err := range []error{failed, deletedFailed} {
		if err != nil && b.Fault == nil {
			e := explain(err)
			b.Fault = &e
		}
	}
	b.Kept, b.Deleted = changes.kept, v.changeRows(deleted.upTo(overviewDeleted).all)
	b.Changes = v.changeRows(changes.withNewer(deleted, overviewChanges).all)
	return v.show("overview.html", page{Title: "Overview", Nav: "overview", Body: b})
}

func limited(q past.Query, limit int) past.Query {
	q.Limit = limit + 1
	return q
}

// deletedOfLate are the deletions of the last day.
func (v *visit) deletedOfLate(f filter) (found, error) {
	if f.Until.Revision == 0 {
		end := f.Until.Time
		if end.IsZero() {
			end = time.Now()
		}
		f.Since.Time = end.Add(-oneDay)
	}
	return v.gather(limited(f.query().With(historyv1.FieldAction, string(historyv1.Deleted)), overviewChanges), "", overviewChanges)
}

// withNewer adds those of others that are not older than all of f.
func (f found) withNewer(others found, limit int) found {
	if f.more {
		oldest := f.all[len(f.all)-1].Revision
		others.all = slices.DeleteFunc(slices.Clone(others.all), func(c historyv1.Change) bool { return c.Revision < oldest })
	}
	return f.with(others, limit)
}
