package ui

import (
	"net/http"
	"strings"
	"time"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// pastColumns are those of a list in the past, whose objects have no columns of their own.
var pastColumns = []column{{Name: "Name"}, {Name: "Revision", Number: true}, {Name: "Last changed"}, {Name: "Age"}}

// pastRows answers with a page of a list's rows as they were. The history gives fewer objects at once than a page has,
// because each comes whole.
func (v *visit) pastRows(kind past.Kind) error {
	if v.at.Back > 0 {
		return problem(http.StatusBadRequest, "~%d counts the changes of one object. Write a time, or a resourceVersion.", v.at.Back)
	}
	at, next, err := v.pastPosition()
	if err != nil {
		return err
	}
	q := past.Query{}.ToObject(kind.In(v.namespace, "")).Bound(historyv1.FieldAt, at)
	out, most := rowsPage{Columns: pastColumns, Rows: []row{}}, v.mostRows()
	for more := true; more; more = next != "" && len(out.Rows) < most {
		q.Limit = most - len(out.Rows)
		var versions []historyv1.Version
		if versions, next, err = v.past.History.VersionsPage(v.ctx(), q, next); err != nil {
			return err
		}
		for i := range versions {
			out.Rows = append(out.Rows, v.pastRow(kind, &versions[i]))
		}
	}
	out.Continue = positionOf(at, next)
	out.Note = v.past.History.Kept() // the history says it with the first page
	return v.json(out)
}

// positionOf is where the next page of a list in the past begins. It has the moment, because one that the visitor has
// written as "2h" is another moment by then.
func positionOf(at past.Moment, next string) string {
	switch {
	case next == "":
		return ""
	case at.Revision > 0:
		return next + "@" + revision(at.Revision)
	}
	return next + "@" + exact(at.Time)
}

// pastPosition is the moment of the list, and where its page begins.
func (v *visit) pastPosition() (at past.Moment, next string, err error) {
	position := v.param("continue")
	if position == "" {
		return v.at, "", nil
	}
	next, moment, _ := strings.Cut(position, "@")
	if at, err = past.ParseMoment("continue", moment, time.Now()); err != nil || at.IsNow() || at.Back > 0 || next == "" {
		return at, "", problem(http.StatusBadRequest, "%q does not continue a list.", position)
	}
	return at, next, nil
}

// pastRow is an object as it was.
func (v *visit) pastRow(kind past.Kind, version *historyv1.Version) row {
	of := version.Object
	r := row{
		Namespace: of.Namespace, Name: of.Name, Cells: []any{of.Name, version.Revision, exact(version.Time.Time), "unreadable"},
		Link: v.objectLink(kind.Name(), of.Namespace, of.Name, ""),
	}
	if o, err := past.Object(version); err == nil {
		created := o.GetCreationTimestamp()
		r.Created, r.Cells[3] = created.Unix(), exact(created.Time)
	}
	return r
}
