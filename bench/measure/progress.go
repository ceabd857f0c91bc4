package measure

import (
	"fmt"
	"io"
	"time"
)

// Progress is one line on a terminal that is written again and again. Without a writer it is
// silent.
type Progress struct {
	W     io.Writer
	Begun time.Time
}

// Say replaces the line.
func (p *Progress) Say(format string, args ...any) {
	if p.W == nil {
		return
	}
	elapsed := time.Since(p.Begun).Round(time.Second)
	fmt.Fprintf(p.W, "\r\x1b[K%5s  %s", elapsed, fmt.Sprintf(format, args...))
}

// Clear empties the line.
func (p *Progress) Clear() {
	if p.W != nil {
		fmt.Fprint(p.W, "\r\x1b[K")
	}
}
