package ui

import (
	"strings"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// blamePage is an object with the change that each of its lines is from.
type blamePage struct {
	*subject
	Lines   []blamedLine
	Managed bool
	Older   bool   // a line is from before what is kept
	Kept    string // see History.Kept
	Fault   *explained
}

// blamedLine is a line of YAML.
type blamedLine struct {
	textLine
	changeRow
	maker
	First bool // of several lines of one change
	Older bool // the change is the oldest that is kept, and the line may be from an earlier one
	Age   int  // from 0, the newest change of the object, to oldestAge
}

// Rev is the revision, marked if the line may be older.
func (l blamedLine) Rev() string {
	if l.Older {
		return "^" + revision(l.Revision)
	}
	return revision(l.Revision)
}

// oldestAge is the last of the shades that tell old lines from new ones.
const oldestAge = 5

// blame shows who made each line of an object.
func (s *subject) blame() error {
	b := &blamePage{subject: s, Managed: s.param("managed") == "1"}
	code := 0
	if err := b.fill(); err != nil {
		e := asAnswer(explain(err), "There is nothing to blame")
		b.Fault, code = &e, e.Code
	}
	return s.show("blame.html", page{Title: s.title() + " · blame", Nav: s.Resource, Code: code, Body: b})
}

func (b *blamePage) fill() error {
	at, err := b.lastThere()
	if err != nil {
		return err
	}
	view := viewOf(b.subject)
	view.All = b.Managed
	lines, err := b.past.History.Blame(b.ctx(), b.target(), at, view)
	if err != nil {
		return err
	}
	b.Lines = b.blamedLines(lines)
	for _, l := range lines {
		b.Older = b.Older || l.Older
	}
	if b.Older {
		b.Kept = b.past.History.Kept()
	}
	return nil
}

// lastThere is the moment of the page, or that before the deletion of an object that is gone.
func (s *subject) lastThere() (past.Moment, error) {
	if !s.Gone || !s.at.IsNow() {
		return s.at, nil
	}
	for change, err := range s.past.History.Changes(s.ctx(), past.Query{Limit: 1}.ToObject(s.target())) {
		if err != nil {
			return past.Moment{}, err
		}
		if change.Action == historyv1.Deleted {
			return past.Moment{Revision: change.Revision - 1}, nil
		}
	}
	return past.Moment{}, nil
}

// blamedLines are the lines as the page shows them.
func (b *blamePage) blamedLines(lines []past.Line) []blamedLine {
	texts := make([]string, len(lines))
	oldest, newest := int64(0), int64(0)
	for i, l := range lines {
		texts[i] = l.Text
		newest = max(newest, l.Change.Revision)
		if oldest == 0 || l.Change.Revision < oldest {
			oldest = l.Change.Revision
		}
	}
	shown := linesOf([]byte(strings.Join(texts, "\n") + "\n"))
	all := make([]blamedLine, len(lines))
	for i, l := range lines {
		d := l.Change.Description
		all[i] = blamedLine{textLine: shown[i], changeRow: b.changeRow(d), maker: makerOf(d), Older: l.Older,
			First: i == 0 || lines[i-1].Change != l.Change}
		if newest > oldest {
			all[i].Age = int(oldestAge * (newest - d.Revision) / (newest - oldest))
		}
	}
	return all
}
