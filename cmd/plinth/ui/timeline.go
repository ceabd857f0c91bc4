package ui

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// timelinePage is an object through time: its versions, and one of them in full. A script asks for that one alone when
// another is chosen, and for all of it without its frame when the object has changed.
type timelinePage struct {
	*subject
	One      bool          // only Chosen is asked for
	Live     string        // address of what changes the object from now on; empty: the page is of the past
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

// Done says what was done.
func (r timelineRow) Done() string { return deedOf(r.Description) }

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
func (v *visit) timeline() error {
	s, err := v.pastSubject("timeline")
	if err != nil {
		return err
	}
	b := &timelinePage{subject: s, Status: v.param("status") == "1"}
	code := 0
	if err := v.fillTimeline(b); err != nil {
		e := explain(err)
		b.Fault, code = &e, e.Code
	}
	return v.show("timeline.html", page{Title: s.title() + " · timeline", Nav: s.Resource, Code: code, Body: b})
}

func (v *visit) fillTimeline(b *timelinePage) error {
	chosen, err := v.chosen(b.target())
	if err != nil {
		return err
	}
	if b.One = v.r.Header.Get("X-Part") == "version"; !b.One {
		if err := v.addVersions(b, chosen); err != nil {
			return err
		}
		if len(b.Versions) > 0 && chosen.IsNow() {
			chosen = past.Moment{Revision: b.Versions[0].Revision}
		}
	}
	if b.Chosen, err = v.shownVersion(b, chosen); err != nil {
		return err
	}
	for i := range b.Versions {
		r := &b.Versions[i]
		r.Chosen = b.Chosen != nil && b.Chosen.Revision <= r.Revision && b.Chosen.Revision >= r.oldest
		r.Base = b.Chosen != nil && r.Revision == b.Chosen.From
	}
	if v.param("done") != "" && b.Chosen != nil {
		b.Done = whatWasDone(b, v.param("more"))
	}
	return nil
}

// chosen is the moment of the version that is shown in full: that of the address, that of the page, or now.
func (v *visit) chosen(t past.Target) (past.Moment, error) {
	if rv := v.param("rv"); rv != "" {
		m, err := revisionOf("rv", rv)
		return m, err
	}
	if v.at.Back == 0 {
		return v.at, nil
	}
	version, err := v.past.History.MustBeAt(v.ctx(), t, v.at)
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
func (v *visit) addVersions(b *timelinePage, chosen past.Moment) error {
	q, err := v.versionsQuery(b)
	if err != nil {
		return err
	}
	if err := v.readVersions(b, q); err != nil {
		return err
	}
	b.Kept = v.past.History.Kept()
	if v.at.IsNow() && b.Until == 0 && b.Kind.Resource.Version != "" {
		b.Live = v.link("live/rows/"+url.PathEscape(b.Resource), "ns", b.Namespace, "rv", v.past.History.Seen(),
			"fields", fields.OneTermEqualSelector("metadata.name", b.Name).String())
	}
	if n := len(b.Versions); n > 0 && chosen.Revision > 0 && chosen.Revision < b.Versions[n-1].oldest && b.Older > 0 {
		// It is on another page.
		b.Versions, b.Until, b.Older, b.Live = nil, chosen.Revision, 0, ""
		if err := v.readVersions(b, past.Query{}.ToObject(b.target()).Bound(historyv1.FieldUntil, chosen)); err != nil {
			return err
		}
	}
	n := len(b.Versions)
	if n == 0 {
		return v.noVersions(b)
	}
	b.Cut = b.Older == 0 && b.Versions[n-1].Action != historyv1.Created
	for i := range b.Versions {
		b.Versions[i].X = placeIn(n-1-i, n)
	}
	return v.addTouched(b)
}

func (v *visit) versionsQuery(b *timelinePage) (past.Query, error) {
	q := past.Query{}.ToObject(b.target())
	if until := v.param("until"); until != "" {
		m, err := revisionOf("until", until)
		b.Until = m.Revision
		return q.Bound(historyv1.FieldUntil, m), err
	}
	if v.at.Back > 0 {
		m, err := v.chosen(b.target())
		return q.Bound(historyv1.FieldUntil, m), err
	}
	return q.Bound(historyv1.FieldUntil, v.at), nil
}

// noVersions says why there are none.
func (v *visit) noVersions(b *timelinePage) error {
	if err := v.past.History.MayGet(v.ctx(), b.target()); err != nil {
		return problem(http.StatusForbidden, "%v", err)
	}
	if b.Gone && v.at.IsNow() && b.Until == 0 {
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
func (v *visit) readVersions(b *timelinePage, q past.Query) error {
	read := 0
	for change, err := range v.past.History.Changes(v.ctx(), q) {
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
			row := timelineRow{changeRow: v.changeRow(change.Description), maker: makerOf(change.Description), oldest: change.Revision, Size: 5}
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
func (v *visit) addTouched(b *timelinePage) error {
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
	for version, err := range v.past.History.Versions(v.ctx(), q) {
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
