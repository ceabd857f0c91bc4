package ui

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// timelinePage is an object through time: its versions, and one of them in full. A script asks for that one alone when
// another is chosen.
type timelinePage struct {
	*subject
	Versions []timelineRow // the newest first
	Chosen   *shownVersion
	Status   bool   // each change of the status is a row
	Until    int64  // the newest of the page, if there may be newer ones
	Older    int64  // the newest of the next page; 0: there is none
	Cut      bool   // older ones are not kept any longer
	Kept     string // what of it is, by which rule
	Done     string
	Fault    *explained
}

// timelineRow is a version in the list, or changes of the status that follow each other.
type timelineRow struct {
	changeRow
	maker
	Times  int
	oldest int64 // of several
	Fields []shortField
	More   int64
	X      string // place among the others on the slider
	Size   int
	Chosen bool
	Base   bool // the others are compared with it
}

// shortField is a field by the end of its name.
type shortField struct{ Name, Short string }

// shownVersion is a version in full.
type shownVersion struct {
	changeRow
	maker
	comparison
	View    string // empty: what changed, below each other; side: side by side; yaml: the whole object
	Lines   []textLine
	From    int64 // the version that it is compared with, if that is not the one before
	Alone   bool  // there is nothing to compare it with: it was created, deleted or copied
	Missing bool  // what was before is not kept
	Newest  bool
	Fault   *explained
}

// Done says what was done.
func (r timelineRow) Done() string { return deedOf(r.Description) }

// Done says what was done.
func (s *shownVersion) Done() string { return deedOf(s.Description) }

// Rev is the revision for addresses.
func (c changeRow) Rev() string { return revision(c.Revision) }

const (
	// versionsAtOnce is how many rows the list has at most.
	versionsAtOnce = 100
	// mostChanges bounds how many changes of the status are read for one page.
	mostChanges = 5000
	// mostShort is how many fields a row names.
	mostShort = 3
)

// timeline shows the versions of an object.
func (s *subject) timeline() error {
	b := &timelinePage{subject: s, Status: s.param("status") == "1"}
	code := 0
	if err := b.fill(); err != nil {
		e := explain(err)
		b.Fault, code = &e, e.Code
	}
	return s.show("timeline.html", page{Title: s.title() + " · timeline", Nav: s.Resource, Code: code, Body: b})
}

func (b *timelinePage) fill() error {
	chosen, err := b.chosen()
	if err != nil {
		return err
	}
	if b.r.Header.Get("X-Part") == "" {
		if err := b.addVersions(chosen); err != nil {
			return err
		}
		if len(b.Versions) > 0 && chosen.IsNow() {
			chosen = past.Moment{Revision: b.Versions[0].Revision}
		}
	}
	if b.Chosen, err = b.shownVersion(chosen); err != nil {
		return err
	}
	for i := range b.Versions {
		r := &b.Versions[i]
		r.Chosen = b.Chosen != nil && b.Chosen.Revision <= r.Revision && b.Chosen.Revision >= r.oldest
		r.Base = b.Chosen != nil && r.Revision == b.Chosen.From
	}
	if b.param("done") != "" && b.Chosen != nil {
		b.Done = b.whatWasDone(b.param("more"))
	}
	return nil
}

// chosen is the moment of the version that is shown in full: that of the address, that of the page, or now.
func (s *subject) chosen() (past.Moment, error) {
	if rv := s.param("rv"); rv != "" {
		m, err := revisionOf("rv", rv)
		return m, err
	}
	if s.at.Back == 0 {
		return s.at, nil
	}
	version, err := s.past.History.MustBeAt(s.ctx(), s.target(), s.at)
	if err != nil {
		return past.Moment{}, err
	}
	return past.Moment{Revision: version.Revision}, nil
}

// revisionOf reads a revision in the address.
func revisionOf(name, text string) (past.Moment, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return past.Moment{}, problem(http.StatusBadRequest, "%s=%q is no revision, which is a number above 0.", name, text)
	}
	return past.Moment{Revision: n}, nil
}

// addVersions reads the rows of the list: the newest, or those until a revision.
func (b *timelinePage) addVersions(chosen past.Moment) error {
	q, err := b.versionsQuery()
	if err != nil {
		return err
	}
	if err := b.readVersions(q); err != nil {
		return err
	}
	b.Kept = b.past.History.Kept()
	if n := len(b.Versions); n > 0 && chosen.Revision > 0 && chosen.Revision < b.Versions[n-1].oldest && b.Older > 0 {
		// It is on another page.
		b.Versions, b.Until, b.Older = nil, chosen.Revision, 0
		if err := b.readVersions(past.Query{}.ToObject(b.target()).Bound(historyv1.FieldUntil, chosen)); err != nil {
			return err
		}
	}
	n := len(b.Versions)
	if n == 0 {
		return b.noVersions()
	}
	b.Cut = b.Older == 0 && b.Versions[n-1].Action != historyv1.Created
	for i := range b.Versions {
		b.Versions[i].X = placeIn(n-1-i, n)
	}
	return b.addTouched()
}

func (b *timelinePage) versionsQuery() (past.Query, error) {
	q := past.Query{}.ToObject(b.target())
	if until := b.param("until"); until != "" {
		m, err := revisionOf("until", until)
		b.Until = m.Revision
		return q.Bound(historyv1.FieldUntil, m), err
	}
	if b.at.Back > 0 {
		m, err := b.chosen()
		return q.Bound(historyv1.FieldUntil, m), err
	}
	return q.Bound(historyv1.FieldUntil, b.at), nil
}

// noVersions says why there are none.
func (b *timelinePage) noVersions() error {
	if err := b.past.History.MayGet(b.ctx(), b.target()); err != nil {
		return problem(http.StatusForbidden, "%v", err)
	}
	if b.Gone && b.at.IsNow() && b.Until == 0 {
		return problem(http.StatusNotFound, "%s is not there, and no change of it is kept.", b.target())
	}
	return nil
}

// placeIn is where a row stands on the slider.
func placeIn(i, n int) string {
	if n < 2 {
		return "50%"
	}
	return strconv.FormatFloat(100*float64(i)/float64(n-1), 'f', 2, 64) + "%"
}

// readVersions makes rows of changes. Changes of the status that follow each other are one row, unless each is asked for.
func (b *timelinePage) readVersions(q past.Query) error {
	read := 0
	for change, err := range b.past.History.Changes(b.ctx(), q) {
		if err != nil {
			return err
		}
		last := len(b.Versions) - 1
		if folded := !b.Status && past.IsStatus(change); folded && last >= 0 && b.Versions[last].Times > 0 {
			b.Versions[last].Times++
			b.Versions[last].oldest = change.Revision
		} else {
			if last+1 == versionsAtOnce || read > mostChanges {
				b.Older = change.Revision
				return nil
			}
			row := timelineRow{changeRow: b.changeRow(change.Description), maker: makerOf(change.Description), oldest: change.Revision, Size: 5}
			if folded {
				row.Times, row.Size = 1, 3
			}
			b.Versions = append(b.Versions, row)
		}
		read++
	}
	return nil
}

// addTouched adds to the rows what fields they changed.
func (b *timelinePage) addTouched() error {
	byRevision := map[int64]*timelineRow{}
	for i := range b.Versions {
		if r := &b.Versions[i]; r.Action == historyv1.Changed && r.Times == 0 {
			byRevision[r.Revision] = r
		}
	}
	if len(byRevision) == 0 {
		return nil
	}
	q := past.Query{}.ToObject(b.target()).With(historyv1.FieldWith, historyv1.WithTouched).
		Bound(historyv1.FieldUntil, past.Moment{Revision: b.Versions[0].Revision}).
		Bound(historyv1.FieldSince, past.Moment{Revision: b.Versions[len(b.Versions)-1].oldest})
	if !b.Status {
		q = q.Without(historyv1.FieldSubresource, "status")
	}
	for version, err := range b.past.History.Versions(b.ctx(), q) {
		if err != nil {
			return err
		}
		if r := byRevision[version.Revision]; r != nil {
			r.addTouched(&version)
		}
	}
	return nil
}

func (r *timelineRow) addTouched(version *historyv1.Version) {
	for i, field := range version.Touched {
		if i == mostShort {
			r.More = int64(len(version.Touched)-mostShort) + version.MoreTouched
			break
		}
		r.Fields = append(r.Fields, shortField{field, shortOf(field)})
	}
	r.Size = 5 + min(4, len(version.Touched)/2)
}

// shortOf is the end of a field's name: image of spec.template.spec.containers[name="web"].image, and what has the value
// of a variable before it: env[name="LOG"].value.
func shortOf(field string) string {
	for _, of := range []string{"metadata.annotations.", "metadata.labels.", "data.", "stringData.", "binaryData."} {
		if strings.HasPrefix(field, of) {
			return field[len(of):]
		}
	}
	last, before := lastDot(field), 0
	if last > 0 {
		before = lastDot(field[:last-1])
	}
	if field[last:] == "value" {
		return field[before:]
	}
	return field[last:]
}

// lastDot is where the last element of a field's name begins. Keys of items, in brackets, may have dots.
func lastDot(field string) int {
	begin, quoted, depth := 0, false, 0
	for i := 0; i < len(field); i++ {
		switch c := field[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '.' && depth == 0:
			begin = i + 1
		}
	}
	return begin
}

// shownVersion reads the version of an object at a moment, and what it is compared with. It is nil if there is none.
func (b *timelinePage) shownVersion(at past.Moment) (*shownVersion, error) {
	q := past.Query{Limit: 1}.ToObject(b.target()).Bound(historyv1.FieldUntil, at)
	var version *historyv1.Version
	for found, err := range b.past.History.Versions(b.ctx(), q) {
		if err != nil {
			return nil, err
		}
		version = &found
	}
	if version == nil {
		return nil, nil
	}
	s := &shownVersion{changeRow: b.changeRow(version.Description), maker: makerOf(version.Description), View: b.param("view")}
	s.Newest = b.Object != nil && b.Object.GetResourceVersion() == s.Rev()
	if err := b.fillVersion(s, version); err != nil {
		e := explain(err)
		s.Fault = &e
	}
	return s, nil
}

func (b *timelinePage) fillVersion(s *shownVersion, version *historyv1.Version) error {
	object, err := past.Object(version)
	if err != nil {
		return err
	}
	view := viewOf(b.subject)
	if s.From, err = b.from(); err != nil {
		return err
	}
	s.Alone = s.From == 0 && s.Action != historyv1.Changed
	if !s.Alone {
		if err := b.compareVersion(s, object, view); err != nil {
			return err
		}
	}
	if s.View == "yaml" || s.Alone || s.Missing {
		text, err := view.Text(object)
		s.Lines = linesOf(text)
		return err
	}
	return nil
}

func (b *timelinePage) from() (int64, error) {
	text := b.param("from")
	if text == "" {
		return 0, nil
	}
	m, err := revisionOf("from", text)
	return m.Revision, err
}

// compareVersion compares a version with the one before, or with the one that the address has; the older one comes first.
func (b *timelinePage) compareVersion(s *shownVersion, object *unstructured.Unstructured, view past.View) error {
	with := past.Moment{Revision: max(1, s.Revision-1)}
	if s.From > 0 {
		with.Revision = s.From
	}
	before, err := b.past.History.At(b.ctx(), b.target(), with)
	if apierrors.IsResourceExpired(err) || err == nil && before == nil && s.From == 0 {
		s.Missing = true
		return nil
	}
	if err != nil {
		return err
	}
	var other *unstructured.Unstructured
	if before != nil {
		if other, err = past.Object(before); err != nil {
			return err
		}
	}
	if s.Action == historyv1.Deleted {
		object = nil
	}
	if s.From > s.Revision {
		other, object = object, other
	}
	s.comparison, err = compareObjects(other, object, view)
	return err
}

// whatWasDone says what the version that is shown has done, to those who have just done it on another page.
func (b *timelinePage) whatWasDone(more string) string {
	c := b.Chosen
	switch {
	case c.Description.Manager == past.UndeleteManager && c.Action == historyv1.Created:
		text := fmt.Sprintf("Brought back as revision %d", c.Revision)
		if n, err := strconv.Atoi(more); err == nil && n > 0 {
			text += fmt.Sprintf(", with %d that went with it", n)
		}
		return text + "."
	case c.Action == historyv1.Deleted:
		return fmt.Sprintf("Deleted, at revision %d.", c.Revision)
	case b.Object != nil && b.Object.GetDeletionTimestamp() != nil:
		return "Its deletion has begun. It ends when the finalizers are gone."
	case c.Description.Manager == past.UndoManager:
		return fmt.Sprintf("Undone: revision %d has the earlier state.", c.Revision)
	}
	return ""
}
