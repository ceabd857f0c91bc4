package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// undeletePage shows what an undelete would create, and does it.
type undeletePage struct {
	*subject
	stepPreview
	To       string
	Deletion *changeRow // the request for it, which finalizers may have held up
	With     []followed // objects that were deleted because of it
	Failed   []notBrought
	Fault    *explained
}

// followed is an object that was deleted because of another.
type followed struct {
	changeRow
	Key    string
	Chosen bool
}

// notBrought is why an object was not brought back.
type notBrought struct{ Key, Text string }

// ToText is the moment for people.
func (b *undeletePage) ToText() string { return momentText(b.To) }

// keyOf names an object in a form.
func keyOf(o historyv1.ObjectReference) string {
	return strings.Join([]string{o.Resource, o.Namespace, o.Name}, "/")
}

// undelete shows what an undelete would create.
func (v *visit) undelete() error { return v.showUndelete(nil, nil) }

// showUndelete shows what an undelete would create, and why it was not done.
func (v *visit) showUndelete(fault error, failed []notBrought) error {
	s, err := v.pastSubject("timeline")
	if err != nil {
		return err
	}
	b, code := &undeletePage{subject: s, Failed: failed}, 0
	if len(failed) == 0 || s.Gone {
		err = v.fillUndelete(b)
	}
	if err = cmp.Or(fault, err); err != nil {
		e := asAnswer(explain(err), "This cannot be brought back")
		b.Fault, code = &e, e.Code
	}
	return v.show("undelete.html", page{Title: s.title() + " · undelete", Nav: "trash", Code: code, Body: b})
}

func (v *visit) fillUndelete(b *undeletePage) error {
	to, err := v.backTo()
	if err != nil {
		return err
	}
	b.To = pinned(to)
	step, err := v.past.Reverter.Undelete(v.ctx(), b.target(), to)
	if err != nil {
		return err
	}
	newest, err := v.newestOf(b.target())
	if err != nil {
		return err
	}
	tried := v.past.Reverter.Try(v.ctx(), step) // its namespace may come back first, so that it is shown all the same
	if b.stepPreview, err = v.previewOf(b.subject, step); err != nil {
		return err
	}
	if newest != nil {
		b.Seen = newest.Rev()
		asked := v.changeRow(v.requestOf(newest.Description))
		b.Deletion = &asked
	}
	if err := v.addFollowed(b, to); err != nil {
		return err
	}
	return tried
}

// newestOf is the newest change of an object, nil if none is kept.
func (v *visit) newestOf(t past.Target) (*changeRow, error) {
	for change, err := range v.past.History.Changes(v.ctx(), past.Query{Limit: 1}.ToObject(t)) {
		if err != nil {
			return nil, err
		}
		row := v.changeRow(change.Description)
		return &row, nil
	}
	return nil, nil
}

// requestOf is the request that deleted an object, where another one has ended the deletion, such as that of a namespace.
func (v *visit) requestOf(deletion historyv1.Description) historyv1.Description {
	if strings.HasPrefix(deletion.Verb, "delete") {
		return deletion
	}
	t := past.Target{Kind: past.Kind{Resource: schema.ParseGroupResource(deletion.Object.Resource).WithVersion("")},
		Namespace: deletion.Object.Namespace, Name: deletion.Object.Name}
	q := past.Query{Limit: 1}.ToObject(t).With(historyv1.FieldVerb, "delete").
		Bound(historyv1.FieldUntil, past.Moment{Revision: deletion.Revision})
	for change, err := range v.past.History.Changes(v.ctx(), q) {
		if err == nil && change.Object.CreateRevision == deletion.Object.CreateRevision {
			return change.Description
		}
	}
	return deletion
}

// addFollowed adds what went with the object, which can be brought back with its last state only.
func (v *visit) addFollowed(b *undeletePage, to past.Moment) error {
	if !to.IsNow() {
		return nil
	}
	deeds, err := v.past.Reverter.UndeleteAll(v.ctx(), b.target())
	if err != nil {
		return err
	}
	for _, d := range deeds[1:] {
		key := keyOf(d.Object)
		chosen := v.r.Method == http.MethodGet || slices.Contains(v.r.PostForm["with"], key)
		b.With = append(b.With, followed{v.changeRow(d.Changes[0].Description), key, chosen})
	}
	return nil
}

// doUndelete creates the object again, and after it those that were chosen of what went with it. One that fails does not
// stop those after it.
func (v *visit) doUndelete() error {
	s, err := v.pastSubject("timeline")
	if err != nil {
		return err
	}
	to, err := v.backTo()
	if err != nil {
		return err
	}
	newest, err := v.newestOf(s.target())
	if err == nil && (newest == nil || newest.Rev() != v.r.PostFormValue("seen")) {
		err = errMeanwhile(s.Name)
	}
	if err != nil {
		return v.showUndelete(err, nil)
	}
	if with := v.r.PostForm["with"]; len(with) > 0 {
		return v.undeleteWith(s, with)
	}
	step, err := v.past.Reverter.Undelete(v.ctx(), s.target(), to)
	if err != nil {
		return v.showUndelete(err, nil)
	}
	result, err := v.past.Reverter.Do(v.ctx(), step, false)
	if err != nil {
		return v.showUndelete(err, nil)
	}
	return v.showDone(s, step, result)
}

// undeleteWith brings back an object, and then others.
func (v *visit) undeleteWith(s *subject, with []string) error {
	deeds, err := v.past.Reverter.UndeleteAll(v.ctx(), s.target())
	if err != nil {
		return v.showUndelete(err, nil)
	}
	step, err := v.past.Reverter.UndoDeed(v.ctx(), deeds[0])
	if err != nil {
		return v.showUndelete(err, nil)
	}
	result, err := v.past.Reverter.Do(v.ctx(), step, false)
	if err != nil {
		return v.showUndelete(err, nil)
	}
	brought, failed := 0, []notBrought{}
	for _, d := range deeds[1:] {
		if !slices.Contains(with, keyOf(d.Object)) {
			continue
		}
		if err := v.bring(d); err != nil {
			failed = append(failed, notBrought{keyOf(d.Object), explain(err).Text})
			continue
		}
		brought++
	}
	if len(failed) > 0 {
		text := fmt.Sprintf("%s is there again as revision %s, with %d that went with it; %d could not be brought back.", s.Name, result.GetResourceVersion(), brought, len(failed))
		return v.showUndelete(problem(http.StatusConflict, "%s", text), failed)
	}
	return v.showDone(s, step, result, "more", strconv.Itoa(brought))
}

// bring plays the step of a deed. Where a controller has made the object meanwhile, it is changed.
func (v *visit) bring(d *past.Deed) error {
	try := func() error {
		step, err := v.past.Reverter.UndoDeed(v.ctx(), d)
		if err != nil {
			return err
		}
		_, err = v.past.Reverter.Do(v.ctx(), step, false)
		return err
	}
	err := try()
	if isThere(err) {
		err = try()
	}
	return err
}
