package ui

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// trashPage is what was deleted and is not there.
type trashPage struct {
	*visit
	Rows        []trashRow
	Kind, User  string // filters
	KindUnknown bool   // the kind is none that the server serves
	More        int    // how many to show next; 0: these are all
	Kept        string
	Fault       *explained
}

// trashRow is a deletion.
type trashRow struct {
	changeRow
	maker
	Bring string // address of the page that brings it back
}

// trashAtOnce is how many deletions the page has first, and mostTrash the most that it has.
const trashAtOnce, mostTrash = 200, 5000

// trash shows what was deleted.
func (v *visit) trash() error {
	b, code := &trashPage{visit: v, Kind: v.param("kind"), User: v.param("user")}, 0
	if err := b.fill(); err != nil {
		e := explain(err)
		b.Fault, code = &e, e.Code
	}
	return v.show("trash.html", page{Title: "Trash", Nav: "trash", Code: code, Body: b})
}

func (b *trashPage) fill() error {
	if b.at.Back > 0 {
		return problem(http.StatusBadRequest, "~%d counts the changes of one object: write a time or a revision.", b.at.Back)
	}
	q := past.Query{Namespace: b.namespace}
	if b.Kind != "" {
		kind, err := b.past.History.FindPastKind(b.ctx(), b.Kind)
		if err != nil {
			return err
		}
		b.Kind, b.KindUnknown = kind.Name(), kind.Resource.Version == ""
		q = q.ToObject(kind.In(b.namespace, ""))
	}
	n, _ := strconv.Atoi(b.param("n"))
	n = min(max(n, trashAtOnce), mostTrash)
	for change, err := range b.past.History.Trash(b.ctx(), q.Bound(historyv1.FieldUntil, b.at)) {
		if err != nil {
			return err
		}
		if b.User != "" && change.User != b.User && change.Impersonator != b.User {
			continue
		}
		if len(b.Rows) == n {
			b.More = min(4*n, mostTrash)
			break
		}
		b.Rows = append(b.Rows, b.trashRow(change.Description))
	}
	b.Kept = b.past.History.Kept()
	for i, asked := 0, 0; i < len(b.Rows) && asked < mostAsked; i++ {
		if r := &b.Rows[i]; !strings.HasPrefix(r.Verb, "delete") {
			d := b.requestOf(r.Description)
			d.Time, d.Revision = r.Time, r.Revision
			r.Description, r.maker, asked = d, makerOf(d), asked+1
		}
	}
	return nil
}

// mostAsked bounds for how many deletions that something else has ended it is looked who had asked for them.
const mostAsked = 30

func (b *trashPage) trashRow(d historyv1.Description) trashRow {
	o := d.Object
	return trashRow{b.changeRow(d), makerOf(d), b.objectLink(o.Resource, o.Namespace, o.Name, "undelete", "at", "")}
}

// KindText is the kind of what was deleted.
func (r trashRow) KindText() string { return cmp.Or(r.Object.Kind, "gone: "+r.Object.Resource) }

// Because says what had been deleted before, if a controller has deleted this because of that.
func (r trashRow) Because() string {
	switch r.User {
	case "system:serviceaccount:kube-system:namespace-controller":
		return "with its namespace"
	case "system:serviceaccount:kube-system:generic-garbage-collector":
		return "with its owner"
	}
	return ""
}

// isThere tells whether an error says that an object is there already.
func isThere(err error) bool { return err != nil && apierrors.IsAlreadyExists(err) }
