package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// bar shows on a terminal how far something has come. Elsewhere it shows nothing.
type bar struct {
	out   io.Writer // nil: nobody looks
	what  string
	begun time.Time
	told  time.Time
	shown bool
}

// barEvery is how often the bar moves.
const barEvery = 200 * time.Millisecond

func newBar(out io.Writer, what string) *bar {
	b := &bar{what: what, begun: time.Now(), told: time.Now()}
	if isTerminal(out) {
		b.out = ownOf(out)
	}
	return b
}

// tell shows that done is done of about all, 0 if that is not known.
func (b *bar) tell(done, all int64) {
	if b.out == nil || done%64 != 0 || time.Since(b.told) < barEvery {
		return
	}
	b.told, b.shown = time.Now(), true
	fmt.Fprintf(b.out, "\r\x1b[K%s", barText(done, all, b.what, time.Since(b.begun)))
}

// barWidth is how many characters the bar has.
const barWidth = 30

func barText(done, all int64, what string, took time.Duration) string {
	text := fmt.Sprintf("%d %s, %.0f a second", done, what, float64(done)/max(took.Seconds(), 0.001))
	if all <= 0 {
		return text
	}
	part := min(float64(done)/float64(all), 1)
	full := int(part * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f%%  %s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), 100*part, text)
}

// end takes the bar away.
func (b *bar) end() {
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

// tellEvery is how often progress is logged.
const tellEvery = 5 * time.Second

// pace tells when progress is to be logged again.
type pace struct {
	told time.Time // zero: never asked
}

// due is true tellEvery after it was true the last time, or after the first call.
func (p *pace) due() bool {
	if p.told.IsZero() {
		p.told = time.Now()
	}
	if time.Since(p.told) < tellEvery {
		return false
	}
	p.told = time.Now()
	return true
}

// progressLog returns a function that logs how many objects of all have been done. doing says to what, and of what
// all are.
func progressLog(logger *slog.Logger, doing, of string) func(objects, all int64) {
	p := pace{time.Now()}
	return func(objects, all int64) {
		if p.due() {
			logger.Info(doing, "objects", objects, of, all)
		}
	}
}
