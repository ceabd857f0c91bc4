package server

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

// settled is how long after its start a server has made all that it keeps.
const settled = 2 * time.Second

var giveBackOnce sync.Once

// giveBack returns to the system the memory that only the start needed, a third of what
// an idle server has on its heap. The collector by itself would keep it until the process
// has allocated as much again, which one that idles does hours later. Once for the process
// is enough: of more servers in it the later ones use what the first has left.
func (s *Server) giveBack(ctx context.Context) {
	select {
	case <-time.After(settled):
		giveBackOnce.Do(debug.FreeOSMemory)
	case <-ctx.Done():
	}
}
