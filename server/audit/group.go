package audit

import (
	"io"
	"runtime"
	"sync"
)

// group writes lines to a file, those of requests that run at once together: a system call costs
// more than the rest of an event. A write returns when its line is written.
type group struct {
	out io.Writer

	mu   sync.Mutex
	open *batch // takes lines; nil: the next line begins one

	writing sync.Mutex // held during the write of a batch
	room    sync.Pool  // of *[]byte, for lines
}

// batch is lines that are written at once.
type batch struct {
	lines []byte
	done  chan struct{} // closed when they are written
	err   error         // why they are not; valid after done
}

// mostTogether is how many bytes are written together, at most, unless one line has more: a log
// that rotates by size refuses what is larger than a file may be.
const mostTogether = 256 << 10

// write writes a line.
func (g *group) write(line []byte) error {
	b, first := g.join(line)
	if !first {
		<-b.done
		return b.err
	}
	// Requests that can run now come to their lines first. On an idle server there are none.
	runtime.Gosched()
	g.writing.Lock()
	defer g.writing.Unlock()
	g.end(b)
	_, b.err = g.out.Write(b.lines)
	close(b.done)
	if cap(b.lines) <= mostTogether {
		g.room.Put(&b.lines)
	}
	return b.err
}

// join adds a line to a batch, and tells whether it is the first there: its writer writes the batch.
func (g *group) join(line []byte) (b *batch, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b = g.open
	if first = b == nil || len(b.lines)+len(line) > mostTogether; first {
		b = &batch{done: make(chan struct{})}
		if room, _ := g.room.Get().(*[]byte); room != nil {
			b.lines = (*room)[:0]
		}
		g.open = b
	}
	b.lines = append(b.lines, line...)
	return b, first
}

// end lets no more lines into a batch.
func (g *group) end(b *batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == b {
		g.open = nil
	}
}
