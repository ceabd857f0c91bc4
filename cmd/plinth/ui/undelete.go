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
func (s *subject) undelete() error { return s.showUndelete(nil, nil) }

// showUndelete shows what an undelete would create, and why it was not done.
func (s *subject) showUndelete(fault error, failed []notBrought) error {
	var err error
	b, code := &undeletePage{subject: s, Failed: failed}, 0
	if len(failed) == 0 || s.Gone {
		err = b.fill()
	}
	if err = cmp.Or(fault, err); err != nil {
		e := asAnswer(explain(err), "This cannot be brought back")
		b.Fault, code = &e, e.Code
	}
	return s.show("undelete.html", page{Title: s.title() + " · undelete", Nav: "trash", Code: code, Body: b})
}

func (b *undeletePage) fill() error {
	to, err := b.backTo()
	if err != nil {
		return err
	}
	b.To = pinned(to)
	step, err := b.past.Reverter.Undelete(b.ctx(), b.target(), to)
	if err != nil {
		return err
	}
	newest, err := b.newestChange()
	if err != nil {
		return err
	}
	tried := b.past.Reverter.Try(b.ctx(), step) // its namespace may come back first, so that it is shown all the same
	if b.stepPreview, err = b.previewOf(step); err != nil {
		return err
	}
	if newest != nil {
		b.Seen = newest.Rev()
		asked := b.changeRow(b.requestOf(newest.Description))
		b.Deletion = &asked
	}
	if err := b.addFollowed(to); err != nil {
		return err
	}
	return tried
}

// newestChange is the newest change of the object, nil if none is kept.
func (s *subject) newestChange() (*changeRow, error) {
	for change, err := range s.past.History.Changes(s.ctx(), past.Query{Limit: 1}.ToObject(s.target())) {
		if err != nil {
			return nil, err
		}
		row := s.changeRow(change.Description)
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
func (b *undeletePage) addFollowed(to past.Moment) error {
	if !to.IsNow() {
		return nil
	}
	deeds, err := b.past.Reverter.UndeleteAll(b.ctx(), b.target())
	if err != nil {
		return err
	}
	for _, d := range deeds[1:] {
		key := keyOf(d.Object)
		chosen := b.r.Method == http.MethodGet || slices.Contains(b.r.PostForm["with"], key)
		b.With = append(b.With, followed{b.changeRow(d.Changes[0].Description), key, chosen})
	}
	return nil
}

// doUndelete creates the object again, and after it those that were chosen of what went with it. One that fails does not
// stop those after it.
func (s *subject) doUndelete() error {
	to, err := s.backTo()
	if err != nil {
		return err
	}
	newest, err := s.newestChange()
	if err == nil && (newest == nil || newest.Rev() != s.r.PostFormValue("seen")) {
		err = errMeanwhile(s.Name)
	}
	if err != nil {
		return s.showUndelete(err, nil)
	}
	if with := s.r.PostForm["with"]; len(with) > 0 {
		return s.undeleteWith(with)
	}
	step, err := s.past.Reverter.Undelete(s.ctx(), s.target(), to)
	if err != nil {
		return s.showUndelete(err, nil)
	}
	result, err := s.past.Reverter.Do(s.ctx(), step, false)
	if err != nil {
		return s.showUndelete(err, nil)
	}
	return s.showDone(step, result)
}

// undeleteWith brings back an object, and then others.
func (s *subject) undeleteWith(with []string) error {
	deeds, err := s.past.Reverter.UndeleteAll(s.ctx(), s.target())
	if err != nil {
		return s.showUndelete(err, nil)
	}
	step, err := s.past.Reverter.UndoDeed(s.ctx(), deeds[0])
	if err != nil {
		return s.showUndelete(err, nil)
	}
	result, err := s.past.Reverter.Do(s.ctx(), step, false)
	if err != nil {
		return s.showUndelete(err, nil)
	}
	brought, failed := 0, []notBrought{}
	for _, d := range deeds[1:] {
		if !slices.Contains(with, keyOf(d.Object)) {
			continue
		}
		if err := s.bring(d); err != nil {
			failed = append(failed, notBrought{keyOf(d.Object), explain(err).Text})
			continue
		}
		brought++
	}
	if len(failed) > 0 {
		text := fmt.Sprintf("%s is there again as revision %s, with %d that went with it; %d could not be brought back.", s.Name, result.GetResourceVersion(), brought, len(failed))
		if s, err = s.pastSubject("timeline"); err != nil { // it is there again
			return err
		}
		return s.showUndelete(problem(http.StatusConflict, "%s", text), failed)
	}
	return s.showDone(step, result, "more", strconv.Itoa(brought))
}

// bring plays the step of a deed. Where a controller has made the object meanwhile, it is changed.
func (s *subject) bring(d *past.Deed) error {
	try := func() error {
		step, err := s.past.Reverter.UndoDeed(s.ctx(), d)
		if err != nil {
			return err
		}
		_, err = s.past.Reverter.Do(s.ctx(), step, false)
		return err
	}
	err := try()
	if isThere(err) {
		err = try()
	}
	return err
}
