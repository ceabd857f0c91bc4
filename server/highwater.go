package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/plinth-io/plinth/sqlstore"
)

// A database that was restored from a backup is behind what its clients have seen, and
// would give the revisions that they hold to other changes. The database cannot know;
// the file "revision" in the data directory does: it has the newest revision served,
// written now and then. A database that is behind it goes on above it, with everything
// older marked as compacted, so that clients list anew.

const (
	highWaterEvery = 10 * time.Second
	// highWaterSlack is above what can be served between two writes of the file.
	highWaterSlack = 1_000_000
)

// highWater is the file. The zero value, without a path, remembers nothing.
type highWater struct {
	path    string
	cluster string
	written int64
}

func newHighWater(dataDir, cluster string) *highWater {
	if dataDir == "" {
		return &highWater{}
	}
	return &highWater{path: filepath.Join(dataDir, "revision"), cluster: cluster}
}

// check compares the log with the file, and raises it if it is behind.
func (h *highWater) check(ctx context.Context, log sqlstore.Log, logf func(string, ...any)) error {
	if err := h.read(); err != nil || h.written == 0 {
		return err
	}
	head, err := log.Head(ctx)
	if err != nil || head.Revision >= h.written {
		return err
	}
	above := h.written + highWaterSlack
	logf("the database is at revision %d but %d was served before: a restored backup; going on above %d", head.Revision, h.written, above)
	return log.Raise(ctx, above)
}

// read takes what the file says, if it is about this cluster.
func (h *highWater) read() error {
	if h.path == "" {
		return nil
	}
	text, err := os.ReadFile(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var cluster string
	var revision int64
	if n, _ := fmt.Sscanf(string(text), "%s %d\n", &cluster, &revision); n == 2 && cluster == h.cluster {
		h.written = revision
	}
	return nil
}

func (h *highWater) write(revision int64) error {
	if h.path == "" || revision == h.written {
		return nil
	}
	temp := h.path + ".new"
	if err := os.WriteFile(temp, fmt.Appendf(nil, "%s %d\n", h.cluster, revision), 0o600); err != nil {
		return err
	}
	h.written = revision
	return os.Rename(temp, h.path)
}

// keep writes the file now and then until ctx ends, and once more then.
func (h *highWater) keep(ctx context.Context, revision func() int64, logf func(string, ...any)) {
	tick := time.NewTicker(highWaterEvery)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			done = true
		}
		if err := h.write(revision()); err != nil {
			logf("remember the newest revision: %v", err)
		}
	}
}
