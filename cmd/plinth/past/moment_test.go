package past

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var (
	berlin = time.FixedZone("CET", 3600)
	now    = time.Date(2026, 11, 23, 15, 4, 5, 0, berlin)
)

func TestParseMoment(t *testing.T) {
	t.Parallel()
	at := func(text string) Moment {
		m, err := time.ParseInLocation(time.DateTime, text, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return Moment{Time: m}
	}
	for text, want := range map[string]Moment{
		"now":                       {},
		"~":                         {Back: 1},
		"~0":                        {},
		"~12":                       {Back: 12},
		"12345":                     {Revision: 12345},
		"0":                         {},
		"2h":                        at("2026-11-23 13:04:05"),
		"90s":                       at("2026-11-23 15:02:35"),
		"1h30m":                     at("2026-11-23 13:34:05"),
		"1.5h":                      at("2026-11-23 13:34:05"),
		"3d":                        at("2026-11-20 15:04:05"),
		"1w":                        at("2026-11-16 15:04:05"),
		"1w1d2h":                    at("2026-11-15 13:04:05"),
		"14:00":                     at("2026-11-23 14:00:00"),
		"14:00:30":                  at("2026-11-23 14:00:30"),
		"2026-11-23":                at("2026-11-23 00:00:00"),
		"2026-11-23 14:00":          at("2026-11-23 14:00:00"),
		"2026-11-23T14:00":          at("2026-11-23 14:00:00"),
		"2026-11-23 14:00:01":       at("2026-11-23 14:00:01"),
		"2026-11-23T13:00:00Z":      at("2026-11-23 14:00:00"),
		"2026-11-23T14:00:00+01:00": at("2026-11-23 14:00:00"),
	} {
		got, err := ParseMoment("at", text, now)
		if text == "0" {
			if err == nil {
				t.Error("there is no revision 0")
			}
			continue
		}
		if err != nil || !got.Time.Equal(want.Time) || got.Revision != want.Revision || got.Back != want.Back {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// TestParseMomentFirst has the zero time, which is not now.
func TestParseMomentFirst(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"0001-01-01T00:00:00Z": false, "0001-01-01T01:00:00+01:00": false, "now": true, "~0": true} {
		if m, err := ParseMoment("at", text, now); err != nil || m.IsNow() != want {
			t.Errorf("%s: now %v, %v", text, m.IsNow(), err)
		}
	}
}

func TestParseMomentBad(t *testing.T) {
	t.Parallel()
	for text, has := range map[string]string{
		"":                     "write how long ago",
		"tomorrow":             "write how long ago",
		"-2h":                  "write how long ago",
		"2":                    "",
		"99999999999999999999": "write how long ago",
		"25:00":                "write how long ago",
		"2026-13-01":           "write how long ago",
		"2x":                   "write how long ago",
		"~x":                   "write how long ago",
		"999999999d":           "write how long ago",
		"16:00":                "in the future, by 55m55s",
		"2027-01-01":           "in the future",
		"2026-11-23T14:05:00Z": "in the future, by 55s",
	} {
		_, err := ParseMoment("at", text, now)
		if has == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		var mistake *Mistake
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), has) || !strings.HasPrefix(err.Error(), "--at: ") {
			t.Errorf("%q: %v; want %q", text, err, has)
		}
	}
}
