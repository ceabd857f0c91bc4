package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// text writes records for people: time, level and message as they are, then attributes in
// the form of slog.TextHandler, which quotes what has spaces or line breaks.
type text struct {
	out   *output
	attrs slog.Handler // writes the attributes alone, to out.line
}

// output is what all handlers that come from one another write to.
type output struct {
	mu   sync.Mutex
	w    io.Writer
	line bytes.Buffer // guarded by mu
}

func newText(w io.Writer, level slog.Leveler) *text {
	out := &output{w: w}
	return &text{out, slog.NewTextHandler(&out.line, &slog.HandlerOptions{Level: level, ReplaceAttr: attributesOnly})}
}

// attributesOnly drops the level and message, which stand at the beginning of a line. Handle
// passes on a record with both empty, so that attributes of these names stay.
func attributesOnly(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.LevelKey && a.Value.Kind() == slog.KindAny || a.Key == slog.MessageKey && a.Value.String() == "") {
		return slog.Attr{}
	}
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(short(a.Value.Duration()).String())
	}
	return a
}

// short rounds a duration to about three figures.
func short(d time.Duration) time.Duration {
	switch {
	case d.Abs() >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d.Abs() >= time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}

// Enabled implements slog.Handler.
func (t *text) Enabled(ctx context.Context, level slog.Level) bool {
	return t.attrs.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t *text) Handle(ctx context.Context, r slog.Record) error {
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	line := &t.out.line
	line.Reset()
	line.WriteString(r.Time.UTC().Format(timeFormat))
	line.WriteByte(' ')
	level := levelName(r.Level)
	line.WriteString(level)
	line.WriteString("      "[min(len(level), 5):])
	line.WriteString(oneLine(r.Message))
	line.WriteByte(' ')
	r.Time, r.Message = time.Time{}, ""
	if err := t.attrs.Handle(ctx, r); err != nil {
		return err
	}
	_, err := t.out.w.Write(append(bytes.TrimRight(line.Bytes(), " \n"), '\n'))
	return err
}

// WithAttrs implements slog.Handler.
func (t *text) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &text{t.out, t.attrs.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (t *text) WithGroup(name string) slog.Handler { return &text{t.out, t.attrs.WithGroup(name)} }
