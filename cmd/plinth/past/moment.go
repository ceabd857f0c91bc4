package past

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Moment is a point in the past as a user writes it. The zero value is now.
type Moment struct {
	Revision int64
	Time     time.Time
	Back     int // that many changes of one object back
}

// momentHelp says what to write for a moment.
const momentHelp = "write how long ago, such as 2h or 3d, a time such as 14:00 or \"2006-01-02 15:04\", or a revision"

var (
	aRevision = regexp.MustCompile(`^[0-9]+$`)
	someBack  = regexp.MustCompile(`^~([0-9]*)$`)
	aDuration = regexp.MustCompile(`^(?:([0-9]+)w)?(?:([0-9]+)d)?((?:[0-9.]+(?:h|m|s|ms))*)$`)
)

// layouts of times, each in the zone of the user. The last two are times of today.
var layouts = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// ParseMoment reads a moment, which the flag of that name has, and refuses one in the future.
func ParseMoment(flag, text string, now time.Time) (Moment, error) {
	m, ok := parseMoment(text, now)
	if !ok {
		return Moment{}, mistakef("--%s: %q: %s", flag, text, momentHelp)
	}
	if m.IsNow() && text != "now" && m.Back == 0 && !someBack.MatchString(text) {
		m.Time = m.Time.Add(1) // the first moment of all times, which is not now
	}
	if m.Time.After(now) {
		return Moment{}, &Mistake{fmt.Sprintf("--%s: %s is in the future, by %s; %s", flag, text, m.Time.Sub(now).Round(time.Second), momentHelp), true}
	}
	return m, nil
}

func parseMoment(text string, now time.Time) (Moment, bool) {
	switch {
	case text == "":
		return Moment{}, false
	case text == "now":
		return Moment{}, true
	case aRevision.MatchString(text):
		revision, err := strconv.ParseInt(text, 10, 64)
		return Moment{Revision: revision}, err == nil && revision > 0
	case someBack.MatchString(text):
		return parseBack(someBack.FindStringSubmatch(text)[1])
	case aDuration.MatchString(text):
		ago, ok := parseAgo(aDuration.FindStringSubmatch(text))
		return Moment{Time: now.Add(-ago)}, ok
	}
	return parseTime(text, now)
}

// parseBack reads the number of ~2; without one it is 1, as git has it.
func parseBack(number string) (Moment, bool) {
	if number == "" {
		return Moment{Back: 1}, true
	}
	back, err := strconv.Atoi(number)
	return Moment{Back: back}, err == nil
}

// parseAgo reads weeks, days, and the rest of a duration.
func parseAgo(parts []string) (time.Duration, bool) {
	var sum time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(parts[i+1])
		if err != nil || n > 100*365 {
			return 0, false
		}
		sum += time.Duration(n) * unit
	}
	if parts[3] == "" {
		return sum, true
	}
	rest, err := time.ParseDuration(parts[3])
	return sum + rest, err == nil
}

func parseTime(text string, now time.Time) (Moment, bool) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return Moment{Time: t}, true
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return Moment{Time: t}, true
		}
	}
	today := now.Format(time.DateOnly) + " "
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		if t, err := time.ParseInLocation(time.DateOnly+" "+layout, today+text, now.Location()); err == nil {
			return Moment{Time: t}, true
		}
	}
	return Moment{}, false
}

// IsNow tells whether the moment is the present.
func (m Moment) IsNow() bool { return m == Moment{} }

// String writes the moment for people.
func (m Moment) String() string {
	switch {
	case m.Revision > 0:
		return "revision " + strconv.FormatInt(m.Revision, 10)
	case m.Back > 0:
		return fmt.Sprintf("%d changes ago", m.Back)
	case m.IsNow():
		return "now"
	}
	return m.Time.Format(time.DateTime)
}

// selector writes a moment other than now for a field selector.
func (m Moment) selector() string {
	if m.Revision > 0 {
		return strconv.FormatInt(m.Revision, 10)
	}
	return timeText(m.Time)
}

// Bound returns the query with a bound, since or until, at a moment.
func (q Query) Bound(field string, m Moment) Query {
	if m.IsNow() {
		return q
	}
	return q.With(field, m.selector())
}

// fix turns a number of changes back into a revision: that before the change. Changes of a status
// alone do not count, because controllers make so many of them that no number would mean anything.
func (h *History) fix(ctx context.Context, t Target, m Moment) (Moment, error) {
	if m.Back == 0 {
		return m, nil
	}
	left := m.Back
	for change, err := range WithoutStatus(h.Changes(ctx, Query{}.ToObject(t))) {
		if err != nil {
			return m, err
		}
		if left--; left == 0 {
			return Moment{Revision: change.Revision - 1}, nil
		}
	}
	if left < m.Back {
		return m, mistakef("~%d: %s has only %s kept%s", m.Back, t, changesThatAre(m.Back-left), h.because())
	}
	newest, err := first(h.Changes(ctx, Query{Limit: 1}.ToObject(t)))
	switch {
	case err != nil:
		return m, err
	case newest == nil:
		return m, h.unknown(ctx, t)
	}
	return m, mistakef("~%d: %s has no change that is kept but of its status%s", m.Back, t, h.because())
}

func changesThatAre(n int) string {
	if n == 1 {
		return "1 change that is"
	}
	return fmt.Sprintf("%d changes that are", n)
}
