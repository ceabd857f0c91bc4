// Package logging makes the log of a program that runs a plinth: one record on each line, for
// people or for machines, with the records of upstream's libraries in the same form. It owns
// the forms and the levels. It must not know what is logged.
package logging

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
)

// Format is how records are written.
type Format string

// Formats.
const (
	Text Format = "text" // TIME LEVEL message key=value ..., for people and grep
	JSON Format = "json" // an object a line; durations are seconds
)

// Set takes the format's name, for a flag.
func (f *Format) Set(name string) error {
	switch got := Format(name); got {
	case Text, JSON:
		*f = got
		return nil
	}
	return fmt.Errorf("write %s or %s", Text, JSON)
}

// String returns the format's name.
func (f *Format) String() string { return string(*f) }

// Type says in a flag's help what to write.
func (f *Format) Type() string { return "text|json" }

// Verbosity says how much below Info is logged; see Options.
type Verbosity int

// most is the highest verbosity with an effect. From 8 on client-go logs the bodies of
// requests and answers, Secrets among them.
const most = 7

// Set takes a number, for a flag.
func (v *Verbosity) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt16 {
		return errors.New("write 0, or a higher number for more")
	}
	*v = Verbosity(min(n, most))
	return nil
}

// String returns the number.
func (v *Verbosity) String() string { return strconv.Itoa(int(*v)) }

// Type says in a flag's help what to write.
func (v *Verbosity) Type() string { return "number" }

// Options of a log. The zero value is text, without records for developers.
type Options struct {
	Format Format
	// Verbosity adds records below Info: from 1 on those of plinth, and those that upstream's
	// libraries write at klog.V(n) for n up to Verbosity. 0: none.
	Verbosity Verbosity
	// Dial changes the verbosity later; nil: it stays.
	Dial *Dial
}

// New returns a log that writes each record to w at once, in one piece and on one line.
func New(w io.Writer, o Options) *slog.Logger {
	if o.Dial == nil {
		o.Dial = NewDial(o.Verbosity)
	}
	options := &slog.HandlerOptions{Level: &o.Dial.level, ReplaceAttr: forMachines}
	if o.Format == JSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(newText(w, options.Level))
}

// lowest is the level of the least important records that a verbosity shows. klog's V(n) is
// n below Debug.
func lowest(verbosity Verbosity) slog.Level {
	if verbosity <= 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug - slog.Level(min(verbosity, most))
}

// levelName returns a name without a number: all of klog's levels are DEBUG.
func levelName(l slog.Level) string { return max(l, slog.LevelDebug).String() }

func forMachines(groups []string, a slog.Attr) slog.Attr {
	switch {
	case a.Value.Kind() == slog.KindDuration:
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	case len(groups) > 0:
	case a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		a.Value = slog.StringValue(a.Value.Time().UTC().Format(timeFormat))
	case a.Key == slog.LevelKey:
		if l, ok := a.Value.Any().(slog.Level); ok {
			a.Value = slog.StringValue(levelName(l))
		}
	}
	return a
}

// oneLine escapes characters that would break a line or colour a terminal.
func oneLine(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return text
	}
	quoted := fmt.Sprintf("%q", text)
	return quoted[1 : len(quoted)-1]
}
