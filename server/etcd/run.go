package etcd

import (
	"context"
	"sync"
	"time"
)

// Run does what a Server does without being asked, until ctx ends: leases expire, and members of a
// shared database know of each other and of their alarms. A Server answers requests without it, too.
func (s *Server) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.runLessor(ctx) })
	wg.Go(func() { s.runMember(ctx) })
	wg.Wait()
}

// failures logs when something that is tried again and again begins to fail and when it works again.
type failures struct {
	what  string
	since time.Time // zero while it works
}

func (f *failures) note(s *Server, ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && f.since.IsZero():
		f.since = time.Now()
		s.o.Log.Warn(f.what+" fails; it is tried again", "err", err)
	case err == nil && !f.since.IsZero():
		s.o.Log.Info(f.what+" works again", "after", time.Since(f.since))
		f.since = time.Time{}
	}
}
