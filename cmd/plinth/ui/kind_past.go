package ui

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

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
	selected, err := v.pastSelector()
	if err != nil {
		return err
	}
	out, most := rowsPage{Columns: pastColumns, Rows: []row{}}, v.mostRows()
	for looked := 0; looked == 0 || next != "" && len(out.Rows) < most && looked < mostLooked; {
		q.Limit = most - len(out.Rows)
		var versions []historyv1.Version
		if versions, next, err = v.past.History.VersionsPage(v.ctx(), q, next); err != nil {
			return err
		}
		for i := range versions {
			object, _ := past.Object(&versions[i]) // nil if it cannot be read, which its row says
			if selected(versions[i].Object, object) {
				out.Rows = append(out.Rows, v.pastRow(kind, &versions[i], object))
			}
		}
		looked += max(1, len(versions))
	}
	out.Continue = positionOf(at, next)
	out.Note = v.past.History.Kept() // the history says it with the first page
	return v.json(out)
}

// mostLooked bounds how many objects one answer looks at, of which selectors may choose none.
const mostLooked = 5000

// pastSelector tells which objects of the past the selectors of the address choose: the history gives all of a resource.
func (v *visit) pastSelector() (func(historyv1.ObjectReference, *unstructured.Unstructured) bool, error) {
	byLabels, err := labels.Parse(v.param("labels"))
	if err != nil {
		return nil, problem(http.StatusBadRequest, "Labels: %v", err)
	}
	byFields, err := fields.ParseSelector(v.param("fields"))
	if err != nil {
		return nil, problem(http.StatusBadRequest, "Fields: %v", err)
	}
	for _, r := range byFields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return nil, problem(http.StatusBadRequest, "Fields: lists of the past know metadata.name and metadata.namespace, and not %s.", r.Field)
		}
	}
	return func(of historyv1.ObjectReference, object *unstructured.Unstructured) bool {
		return byFields.Matches(fields.Set{"metadata.name": of.Name, "metadata.namespace": of.Namespace}) &&
			(byLabels.Empty() || object != nil && byLabels.Matches(labels.Set(object.GetLabels())))
	}, nil
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

// pastRow is an object as it was; nil: it cannot be read.
func (v *visit) pastRow(kind past.Kind, version *historyv1.Version, object *unstructured.Unstructured) row {
	of := version.Object
	r := row{
		Namespace: of.Namespace, Name: of.Name, Cells: []any{of.Name, version.Revision, exact(version.Time.Time), "unreadable"},
		Link: v.objectLink(kind.Name(), of.Namespace, of.Name, ""),
	}
	if object != nil {
		created := object.GetCreationTimestamp()
		r.Created, r.Cells[3] = created.Unix(), exact(created.Time)
	}
	return r
}
