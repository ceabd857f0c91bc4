package ui

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// undoPage shows what an undo would do, and does it.
type undoPage struct {
	*subject
	stepPreview
	To    string // the moment, such that it does not move; empty: before the last change
	Fault *explained
}

// stepPreview is a step before it is played.
type stepPreview struct {
	comparison
	Verb   string // change, create, delete; empty: there is nothing to do
	Lines  []textLine
	Notes  []string
	Within []within
	Seen   string // what was looked at: if it is another one when the step is to be played, it is not
	View   string
}

// within are objects of one resource that are deleted with another.
type within struct {
	Resource string
	Names    []string
	More     int
	Count    int
}

// undo shows what an undo would do.
func (v *visit) undo() error { return v.showUndo(nil) }

// showUndo shows what an undo would do, and why it was not done.
func (v *visit) showUndo(fault error) error {
	s, err := v.pastSubject("timeline")
	if err != nil {
		return err
	}
	b, code := &undoPage{subject: s}, 0
	step, err := v.undoStep(b)
	if err == nil {
		err = v.past.Reverter.Try(v.ctx(), step)
	}
	if err == nil && !step.Empty() {
		b.stepPreview, err = v.previewOf(s, step)
	}
	if err = cmp.Or(fault, err); err != nil {
		e := asAnswer(explain(err), "This cannot be undone")
		b.Fault, code = &e, e.Code
	}
	return v.show("undo.html", page{Title: s.title() + " · undo", Nav: s.Resource, Code: code, Body: b})
}

// undoStep is the step that the address asks for.
func (v *visit) undoStep(b *undoPage) (*past.Step, error) {
	to, err := v.backTo()
	if err != nil {
		return nil, err
	}
	b.To = pinned(to)
	return v.past.Reverter.Undo(v.ctx(), b.target(), to)
}

// backTo is the moment whose state an object gets: that of the form, of the address, or of the page.
func (v *visit) backTo() (past.Moment, error) {
	text := cmp.Or(v.r.PostFormValue("to"), v.param("to"))
	if text == "" {
		return v.at, nil
	}
	return past.ParseMoment("to", text, time.Now())
}

// pinned writes a moment such that it means the same later.
func pinned(m past.Moment) string {
	switch {
	case m.Revision > 0:
		return revision(m.Revision)
	case m.Back > 0:
		return "~" + strconv.Itoa(m.Back)
	case m.IsNow():
		return ""
	}
	return m.Time.UTC().Format(time.RFC3339Nano)
}

// momentText writes a moment for people.
func momentText(pinned string) string {
	if m, err := past.ParseMoment("to", pinned, time.Now()); err == nil {
		if m.Time.IsZero() {
			return m.String()
		}
		return exact(m.Time)
	}
	return pinned
}

// ToText is the moment for people.
func (b *undoPage) ToText() string { return momentText(b.To) }

// previewOf shows what a step does.
func (v *visit) previewOf(s *subject, step *past.Step) (p stepPreview, err error) {
	view := viewOf(s)
	p = stepPreview{Verb: step.Verb(), Notes: notesOf(step), Within: withinOf(step.Within), View: v.param("view")}
	if step.Before != nil {
		p.Seen = step.Before.GetResourceVersion()
	}
	if p.Verb == "change" {
		p.comparison, err = compareObjects(step.Before, step.Result, view)
		return p, err
	}
	whole := step.Before
	if p.Verb == "create" {
		whole = step.Result
	}
	text, err := view.Text(whole)
	p.Lines = linesOf(text)
	return p, err
}

// notesOf says what of the old state a step does not bring back.
func notesOf(step *past.Step) (notes []string) {
	for _, owner := range step.Lost {
		notes = append(notes, "Its owner is gone, so the reference is left out: "+ownerText(owner)+".")
	}
	if step.Token {
		notes = append(notes, "Its token stays taken back. It gets a new one if its service account is there.")
	}
	if step.Status && step.Before == nil {
		notes = append(notes, "Its status is not brought back: controllers write it anew.")
	} else if step.Status {
		notes = append(notes, "Its status stays as it is: controllers write it.")
	}
	return notes
}

func ownerText(owner metav1.OwnerReference) string {
	return fmt.Sprintf("%s %s, uid %s", owner.Kind, owner.Name, owner.UID)
}

// mostWithin is how many objects of a resource are named.
const mostWithin = 10

func withinOf(all []historyv1.ObjectReference) (out []within) {
	names := map[string][]string{}
	for _, o := range all {
		names[o.Resource] = append(names[o.Resource], o.Name)
	}
	for _, resource := range slices.Sorted(maps.Keys(names)) {
		some := names[resource]
		n := min(mostWithin, len(some))
		out = append(out, within{resource, some[:n], len(some) - n, len(some)})
	}
	return out
}

// asAnswer is an error that has no status of its own, because it says that something cannot be done.
func asAnswer(e explained, title string) explained {
	if e.Code == http.StatusInternalServerError {
		e.Code, e.Title = http.StatusConflict, title
	}
	return e
}

// errMeanwhile is the error of a form about an object that has changed since it was looked at.
func errMeanwhile(what string) error {
	return problem(http.StatusConflict, "%s has changed since you looked at it. Nothing was written. This is what would be done now.", what)
}

// doUndo undoes what the form was about.
func (v *visit) doUndo() error {
	s, err := v.pastSubject("timeline")
	if err != nil {
		return err
	}
	step, err := v.undoStep(&undoPage{subject: s})
	if err != nil {
		return v.showUndo(err)
	}
	if step.Before.GetResourceVersion() != v.r.PostFormValue("seen") {
		return v.showUndo(errMeanwhile(s.Name))
	}
	result, err := v.past.Reverter.Do(v.ctx(), step, false)
	if err != nil {
		return v.showUndo(err)
	}
	return v.showDone(s, step, result)
}

// showDone goes on to the timeline, at the version that was written.
func (v *visit) showDone(s *subject, step *past.Step, result *unstructured.Unstructured, more ...string) error {
	rv := ""
	if step.Verb() != "delete" {
		rv = result.GetResourceVersion()
	}
	address := v.objectLink(s.Resource, s.Namespace, s.Name, "timeline", append([]string{"at", "", "rv", rv, "done", "1"}, more...)...)
	http.Redirect(v.w, v.r, address, http.StatusSeeOther)
	return nil
}
