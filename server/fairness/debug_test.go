package fairness

import (
	"strings"
	"sync"
	"testing"
)

// The debug pages show requests that come and go while they are written; the race detector watches.
func TestDebugUnderLoad(t *testing.T) {
	e := open(t)
	e.limit(long)
	held := e.block(bob, get, 1)
	var load sync.WaitGroup
	done := make(chan struct{})
	for range 2 * testSeats {
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					e.ask(ann, get)
				}
			}
		})
	}
	for range 20 {
		for _, path := range DebugPaths {
			if page := e.page(path); !strings.Contains(page, "test,") {
				t.Errorf("%s does not show the level:\n%s", path, page)
			}
		}
	}
	close(done)
	load.Wait()
	held.release()
}
