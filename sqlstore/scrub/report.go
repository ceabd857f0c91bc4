package scrub

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Report is what was looked at, and how much of it is damaged.
type Report struct {
	Head      changelog.Head
	Rows      int64 // of the log
	Old       int64 // versions beside the log
	Objects   int64 // in force
	Bytes     int64 // of values
	Encrypted int64 // rows that could not be decoded, because there is no configuration of their encryption
	Problems  int64
	Digest    sqlstore.Digest // of the objects in force, if Options.Memory asks for it
}

// Problem is one piece of damage.
type Problem struct {
	Revision int64  // of a row; 0: it is not about one
	Key      string // of the row
	What     string
}

func (p Problem) String() string {
	if p.Revision == 0 {
		return p.What
	}
	return fmt.Sprintf("revision %d of %s: %s", p.Revision, p.Key, p.What)
}

// Options say how to look.
type Options struct {
	// Transformer reads encrypted values; nil: they are counted.
	Transformer sqlstore.Transformer
	// Served says why nothing can serve an object that is not damaged, for instance because it is of a version that is
	// not known any more; nil for others. It is asked of objects in force, and of some that are not. nil: nobody asks.
	Served func(key string, value []byte) error
	// Found is called with each problem; nil: they are counted.
	Found func(Problem)
	// Memory returns the digest of what a server has in memory at a revision, to be compared with that of the
	// database; ErrCompacted if it cannot go back so far. nil: nothing is compared.
	Memory func(ctx context.Context, revision int64) (sqlstore.Digest, error)
	// Pace is called now and then, and may sleep; nil: there is no pause.
	Pace func()
	// Progress is called after each row that was decoded; nil: nobody wants to know.
	Progress func(rows, bytes int64)
}

// finder counts problems and rows.
type finder struct {
	o      Options
	report Report
	steps  int // since Pace was called

	gaps    []*gap   // what cannot be read of tables
	damaged []string // tables of which something cannot be read
	partial bool     // something could not be read, so that counts cannot be compared
}

func (f *finder) found(r *changelog.Row, format string, args ...any) {
	p := Problem{What: fmt.Sprintf(format, args...)}
	if r != nil {
		p.Revision, p.Key = r.Revision, r.Key
	}
	f.tell(p)
}

func (f *finder) tell(p Problem) {
	f.report.Problems++
	if f.o.Found != nil {
		f.o.Found(p)
	}
}

// paceBytes is about how much is read between two calls of Pace; a row counts for rowBytes more than
// its value.
const (
	paceBytes = 256 << 10
	rowBytes  = 512
)

func (f *finder) pace(bytes int) {
	if f.steps += bytes + rowBytes; f.steps >= paceBytes && f.o.Pace != nil {
		f.steps = 0
		f.o.Pace()
	}
}
