package ui

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"time"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// changeRow is a change of an object as lists of changes show it.
type changeRow struct {
	historyv1.Description
	Link string // of the object's timeline at that version
}

// Person is who made the change.
func (c changeRow) Person() string { return past.Person(c.Description) }

// Account is the user by whose name the changes of that person are found.
func (c changeRow) Account() string { return c.User }

// Manager is by which program it was made.
func (c changeRow) Manager() string { return past.Manager(c.Description) }

// Way is by what request it was made.
func (c changeRow) Way() string { return past.Way(c.Description) }

// When is the time of the change.
func (c changeRow) When() time.Time { return c.Time.Time }

func (v *visit) changeRow(d historyv1.Description) changeRow {
	return changeRow{d, v.objectLink(d.Object.Resource, d.Object.Namespace, d.Object.Name, "timeline", "rv", revision(d.Revision))}
}

func (v *visit) changeRows(all []historyv1.Change) (rows []changeRow) {
	for _, change := range all {
		rows = append(rows, v.changeRow(change.Description))
	}
	return rows
}

// quiet are resources whose changes say that something is alive, and nothing else.
var quiet = []string{"leases.coordination.k8s.io", "events", "events.events.k8s.io"}

// filter says which changes a page shows.
type filter struct {
	Namespace    string
	Resource     string // deployments.apps
	User, Verb   string
	Status       bool // changes of a status alone, too
	Quiet        bool // quiet resources, too
	Since, Until past.Moment
}

// query is what of the filter the server decides.
func (f filter) query() past.Query {
	q := past.Query{Namespace: f.Namespace}.Bound(historyv1.FieldSince, f.Since).Bound(historyv1.FieldUntil, f.Until)
	switch {
	case f.Resource != "":
		q = q.With(historyv1.FieldResource, f.Resource)
	case !f.Quiet:
		for _, resource := range quiet {
			q = q.Without(historyv1.FieldResource, resource)
		}
	}
	if f.Verb != "" {
		q = q.With(historyv1.FieldVerb, f.Verb)
	}
	return q
}

// wants decides the rest, of changes that come one by one.
func (f filter) wants(change historyv1.Change) bool {
	byUser := f.User == "" || past.MadeBy(change.Description, f.User)
	return byUser && (f.Status || !past.IsStatus(change))
}

// changes are those of a filter, the newest first.
func (v *visit) changes(q past.Query, user string) iter.Seq2[historyv1.Change, error] {
	if user != "" {
		return v.past.History.ByUser(v.ctx(), q, user)
	}
	return v.past.History.Changes(v.ctx(), q)
}

// found are changes of a filter.
type found struct {
	all  []historyv1.Change // the newest first
	more bool               // there are older ones
	kept string             // since when everything is kept, if that is not all
}

// newest returns the newest changes that a filter wants, at most limit. Statuses are left out by the server, because
// there may be a thousand of them for each other change; only those that ended a deletion are asked for again.
func (v *visit) newest(f filter, limit int) (found, error) {
	q := f.query()
	q.Limit = limit + 1
	if f.Status {
		return v.gather(q, f.User, limit)
	}
	out, err := v.gather(q.Without(historyv1.FieldSubresource, "status"), f.User, limit)
	if err != nil {
		return out, err
	}
	ends := q.With(historyv1.FieldSubresource, "status").With(historyv1.FieldAction, string(historyv1.Deleted))
	if out.more {
		ends = ends.Bound(historyv1.FieldSince, past.Moment{Revision: out.all[len(out.all)-1].Revision})
	}
	ended, err := v.gather(ends, f.User, limit)
	return out.with(ended, limit), err
}

func (v *visit) gather(q past.Query, user string, limit int) (found, error) {
	var out found
	for change, err := range v.changes(q, user) {
		if err != nil {
			return out, err
		}
		out.all = append(out.all, change)
	}
	out.kept = v.past.History.Kept()
	return out.upTo(limit), nil
}

// with adds changes to others.
func (f found) with(others found, limit int) found {
	f.all = append(f.all, others.all...)
	f.more = f.more || others.more
	slices.SortFunc(f.all, func(a, b historyv1.Change) int { return cmp.Compare(b.Revision, a.Revision) })
	f.all = slices.CompactFunc(f.all, func(a, b historyv1.Change) bool { return a.Revision == b.Revision })
	return f.upTo(limit)
}

func (f found) upTo(limit int) found {
	if len(f.all) > limit {
		f.all, f.more = f.all[:limit], true
	}
	return f
}

// until is the end of what lists of changes show: the moment of the page.
func (v *visit) until() (past.Moment, error) {
	if v.at.Back > 0 {
		return past.Moment{}, problem(http.StatusBadRequest, "%q counts the changes of one object. Write a time here, or a resourceVersion.", v.atText)
	}
	return v.at, nil
}
