package etcd

import (
	"context"
	"sync"
	"time"
)

// Run does the recurring work of a Server until ctx ends: it lets leases expire and, on a shared database,
// publishes this member and reads the alarms of others. A Server also answers requests without it.
func (s *Server) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.runLessor(ctx) })
	wg.Go(func() { s.runMember(ctx) })
	wg.Wait()
}

// failures logs when a repeated operation begins to fail and when it works again.
type failures struct {
	what  string
	since time.Time // zero: it works
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
