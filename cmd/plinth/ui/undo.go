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
	To     string // the moment, such that it does not move; empty: before the last change
	Change string // the revision of the one change that is taken back; empty: all since To
	Fault  *explained
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
func (s *subject) undo() error { return s.showUndo(nil) }

// showUndo shows what an undo would do, and why it was not done.
func (s *subject) showUndo(fault error) error {
	b, code := &undoPage{subject: s}, 0
	step, err := b.step()
	if err == nil {
		err = s.past.Reverter.Try(s.ctx(), step)
	}
	if err == nil && !step.Empty() {
		b.stepPreview, err = s.previewOf(step)
	}
	if err = cmp.Or(fault, err); err != nil {
		e := asAnswer(explain(err), "This cannot be undone")
		b.Fault, code = &e, e.Code
	}
	return s.show("undo.html", page{Title: s.title() + " · undo", Nav: s.Resource, Code: code, Body: b})
}

// step is the step that the address asks for.
func (b *undoPage) step() (*past.Step, error) {
	if b.Change = b.r.FormValue("change"); b.Change != "" {
		m, err := revisionOf("change", b.Change)
		if err != nil {
			return nil, err
		}
		return b.past.Reverter.UndoChange(b.ctx(), b.target(), m.Revision)
	}
	to, err := b.backTo()
	if err != nil {
		return nil, err
	}
	b.To = pinned(to)
	return b.past.Reverter.Undo(b.ctx(), b.target(), to)
}

// backTo is the moment whose state an object gets: that of the form, of the address, or of the page.
func (s *subject) backTo() (past.Moment, error) {
	text := cmp.Or(s.r.PostFormValue("to"), s.param("to"))
	if text == "" {
		return s.at, nil
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
func (s *subject) previewOf(step *past.Step) (p stepPreview, err error) {
	view := viewOf(s)
	p = stepPreview{Verb: step.Verb(), Notes: notesOf(step), Within: withinOf(step.Within), View: s.param("view")}
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
func (s *subject) doUndo() error {
	step, err := (&undoPage{subject: s}).step()
	if err != nil {
		return s.showUndo(err)
	}
	if step.Before.GetResourceVersion() != s.r.PostFormValue("seen") {
		return s.showUndo(errMeanwhile(s.Name))
	}
	result, err := s.past.Reverter.Do(s.ctx(), step, false)
	if err != nil {
		return s.showUndo(err)
	}
	return s.showDone(step, result)
}

// showDone goes on to the timeline, at the version that was written.
func (s *subject) showDone(step *past.Step, result *unstructured.Unstructured, more ...string) error {
	rv := ""
	if step.Verb() != "delete" {
		rv = result.GetResourceVersion()
	}
	address := s.objectLink(s.Resource, s.Namespace, s.Name, "timeline", append([]string{"at", "", "rv", rv, "done", "1"}, more...)...)
	http.Redirect(s.w, s.r, address, http.StatusSeeOther)
	return nil
}
