package ui

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// dayFigures say who changed how much, and when, in the 24 hours before a moment.
type dayFigures struct {
	Start  int64       `json:"start"` // of the first part, in seconds
	Step   int64       `json:"step"`  // of each part, in seconds
	End    int64       `json:"end"`
	People []dayPerson `json:"people"` // those with the most changes first, then all others
	Total  int         `json:"total"`
	From   int64       `json:"from,omitempty"` // older changes are not counted, because there are too many; in seconds
	Kept   string      `json:"kept,omitempty"`
}

// dayPerson is one of those who made changes.
type dayPerson struct {
	Name   string `json:"name"`
	User   string `json:"user,omitempty"` // whose changes these are; empty for those of all others
	Link   string `json:"link,omitempty"`
	Total  int    `json:"total"`
	Counts []int  `json:"counts"` // for each part of the day
}

const (
	dayStep   = 10 * time.Minute
	dayParts  = int(oneDay / dayStep)
	dayPeople = 5
	// dayMost bounds the changes that are read for the figures.
	dayMost = 20_000
	// dayFresh is how old figures may be, at least; longer if they take long: dayShare times what they took.
	dayFresh, dayShare = 10 * time.Second, 20
	mostDays           = 20 // of a connection
)

// dayCache has the figures of late, by their address.
type dayCache struct {
	mu    sync.Mutex
	byKey map[string]*keptDay
}

type keptDay struct {
	mu      sync.Mutex // held while they are made
	figures *dayFigures
	until   time.Time
}

func (c *dayCache) get(key string, make func() (*dayFigures, error)) (*dayFigures, error) {
	d := c.entry(key)
	d.mu.Lock()
	defer d.mu.Unlock()
	begun := time.Now()
	if d.figures != nil && begun.Before(d.until) {
		return d.figures, nil
	}
	figures, err := make()
	if err == nil {
		d.figures, d.until = figures, time.Now().Add(max(dayFresh, dayShare*time.Since(begun)))
	}
	return figures, err
}

func (c *dayCache) entry(key string) *keptDay {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil || len(c.byKey) >= mostDays && c.byKey[key] == nil {
		c.byKey = map[string]*keptDay{}
	}
	if c.byKey[key] == nil {
		c.byKey[key] = &keptDay{}
	}
	return c.byKey[key]
}

// nowDay answers with the figures of the changes that a filter wants.
func (v *visit) nowDay() error {
	figures, err := v.conn.days.get(v.r.URL.RawQuery, v.dayFigures)
	if err != nil {
		return err
	}
	return v.json(figures)
}

func (v *visit) dayFigures() (*dayFigures, error) {
	f, err := v.filter()
	if err != nil {
		return nil, err
	}
	end, err := v.endOf(f.Until)
	if err != nil {
		return nil, err
	}
	d := newDay(end)
	f.Since = past.Moment{Time: time.Unix(d.Start, 0)}
	all, err := v.newest(f, dayMost)
	if err != nil {
		return nil, err
	}
	d.count(all.all)
	for i, p := range d.People {
		if p.User != "" {
			d.People[i].Link = v.link("now", "user", p.User)
		}
	}
	d.Kept = all.kept
	if all.more {
		d.From = all.all[len(all.all)-1].Time.Unix()
	}
	return d, nil
}

// endOf is the time of a moment: of a revision that of the last change up to it.
func (v *visit) endOf(m past.Moment) (time.Time, error) {
	switch {
	case !m.Time.IsZero():
		return m.Time, nil
	case m.Revision > 0:
		for change, err := range v.past.History.Changes(v.ctx(), limited(past.Query{}.Bound(historyv1.FieldUntil, m), 0)) {
			return change.Time.Time, err
		}
	}
	return time.Now(), nil
}

// newDay returns figures without any change, for the parts up to the one that a moment is in.
func newDay(end time.Time) *dayFigures {
	last := end.Truncate(dayStep)
	return &dayFigures{
		Start: last.Add(-time.Duration(dayParts-1) * dayStep).Unix(), Step: int64(dayStep / time.Second), End: end.Unix(), People: []dayPerson{},
	}
}

// count adds changes.
func (d *dayFigures) count(all []historyv1.Change) {
	byName := map[string]*dayPerson{}
	for _, change := range all {
		since := change.Time.Unix() - d.Start
		part := since / d.Step
		if since < 0 || part >= int64(dayParts) {
			continue // of a clock that is not this one
		}
		name := past.Person(change.Description)
		p := byName[name]
		if p == nil {
			p = &dayPerson{Name: name, User: change.User, Counts: make([]int, dayParts)}
			byName[name] = p
		}
		p.add(part, 1)
		d.Total++
	}
	for _, p := range byName {
		d.People = append(d.People, *p)
	}
	slices.SortFunc(d.People, func(a, b dayPerson) int { return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name)) })
	d.fold()
}

// fold puts together those who are not among the first.
func (d *dayFigures) fold() {
	if len(d.People) <= dayPeople+1 {
		return
	}
	rest := d.People[dayPeople:]
	others := dayPerson{Name: fmt.Sprintf("%d others", len(rest)), Counts: make([]int, dayParts)}
	for _, p := range rest {
		for part, n := range p.Counts {
			others.add(int64(part), n)
		}
	}
	d.People = append(slices.Clone(d.People[:dayPeople]), others)
}

func (p *dayPerson) add(part int64, n int) {
	p.Counts[part] += n
	p.Total += n
}
