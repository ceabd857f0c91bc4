package bench

import (
	"fmt"
	"io"
	"time"
)

// progress is one line on a terminal that is written again and again. Without a writer it is
// silent.
type progress struct {
	w     io.Writer
	begun time.Time
}

func (p *progress) say(format string, args ...any) {
	if p.w == nil {
		return
	}
	elapsed := time.Since(p.begun).Round(time.Second)
	fmt.Fprintf(p.w, "\r\x1b[K%5s  %s", elapsed, fmt.Sprintf(format, args...))
}

// clear empties the line.
func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
