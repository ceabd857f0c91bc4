package ui

import (
	"slices"
	"time"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// overviewPage is the first page: what changed of late.
type overviewPage struct {
	Changes []changeRow
	Kept    string
	Fault   *explained
}

// changeRow is a change of an object as lists of changes show it.
type changeRow struct {
	historyv1.Description
	Link string // of the object's timeline at that version
}

// Person is who made the change.
func (c changeRow) Person() string { return past.Person(c.Description) }

// Manager is by which program it was made.
func (c changeRow) Manager() string { return past.Manager(c.Description) }

// Way is by what request it was made.
func (c changeRow) Way() string { return past.Way(c.Description) }

// When is the time of the change.
func (c changeRow) When() time.Time { return c.Time.Time }

// overviewChanges is how many changes the first page shows.
const overviewChanges = 30

// overview shows what people and programs have changed of late, without statuses.
func (v *visit) overview() error {
	var b overviewPage
	q := past.Query{Namespace: v.namespace}.Bound(historyv1.FieldUntil, v.at)
	for change, err := range past.Limited(past.WithoutStatus(v.past.History.Changes(v.ctx(), q)), overviewChanges) {
		if err != nil {
			e := explain(err)
			b.Fault = &e
			break
		}
		if slices.Contains(quiet, change.Object.Resource) {
			continue
		}
		b.Changes = append(b.Changes, v.changeRow(change.Description))
	}
	b.Kept = v.past.History.Kept()
	return v.show("overview.html", page{Title: "Overview", Nav: "overview", Body: b})
}

// quiet are resources whose changes say that something is alive, and nothing else.
var quiet = []string{"leases.coordination.k8s.io", "events", "events.events.k8s.io"}

func (v *visit) changeRow(d historyv1.Description) changeRow {
	return changeRow{d, v.objectLink(d.Object.Resource, d.Object.Namespace, d.Object.Name, "timeline", "rv", revision(d.Revision))}
}
