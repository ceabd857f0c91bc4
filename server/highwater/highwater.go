// Package highwater notices that a database was set back, or exchanged for another one, by a file
// beside it. It must not know what is served.
package highwater

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/atomicfile"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// A database that was restored from a backup is behind what its clients have seen, and would
// give the revisions that they hold to other changes. So would a database that they do not
// know at all, for example when a volume is not mounted. The database cannot notice this. A
// file in the data directory can: it has the cluster that was served last, its
// newest revision, written now and then, and the name of its database. If the same cluster is
// further back, it goes on above what was served, with everything older marked as compacted,
// so that clients list anew. Another cluster is refused, unless it was copied from the known
// one or the caller permits it.

const (
	every = 10 * time.Second
	// slack is more revisions than can be served between two writes of the file.
	slack = sqlstore.Slack
)

// ErrOther says that a database is not the one that was served before.
var ErrOther = errors.New("another database")

// otherError is an ErrOther that says everything itself.
type otherError struct{ text string }

func (e *otherError) Error() string        { return e.text }
func (e *otherError) Is(target error) bool { return target == ErrOther }

// Mark is the file. Without a path it remembers nothing. Only one goroutine uses it at a time.
type Mark struct {
	path    string
	last    served // content of the file
	failing bool   // to be written

	cluster, database string // what is being served
	raw               bool   // it has raw keys, whose revisions are not ids
}

// served is what was served, at most up to revision, which is the one that clients see.
type served struct {
	cluster  string
	revision int64
	database string // empty if an older version wrote the file
}

// Read reads the file of a database, if there is one. A database in memory is new every time, so
// it has none. A file that says nothing is an error: without it, nobody would notice that the
// database was set back.
func Read(path, dsn string) (*Mark, error) {
	if path == "" || dialects.InMemory(dsn) {
		return &Mark{}, nil
	}
	h := &Mark{path: path, database: dialects.Describe(dsn)}
	text, err := os.ReadFile(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which revisions were served: %w; make it a file that user id %d can read, or choose another data directory", err, os.Geteuid())
	}
	if h.last, err = parse(string(text)); err != nil {
		return nil, fmt.Errorf("read which revisions were served: the file %s %w; write the line CLUSTER REVISION into it, with the highest revision that clients have seen (plinth status --dsn prints both as they are now), or remove the file if the database was not set back to an older state",
			h.path, err)
	}
	return h, nil
}

// parse reads the content of the file. A first line without an end may have lost digits.
func parse(text string) (served, error) {
	first, rest, ended := strings.Cut(text, "\n")
	fields := strings.Fields(first)
	switch {
	case strings.TrimSpace(text) == "":
		return served{}, errors.New("is empty")
	case len(fields) != 2:
		return served{}, fmt.Errorf("begins with %.80q instead of CLUSTER REVISION", first)
	case !ended:
		return served{}, errors.New("ends within its first line")
	}
	revision, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || revision < 0 {
		return served{}, fmt.Errorf("has %.80q in place of the revision", fields[1])
	}
	database, _, _ := strings.Cut(rest, "\n")
	return served{fields[0], revision, database}, nil
}

// Known tells whether the file names a cluster that was served.
func (h *Mark) Known() bool { return h.last.revision > 0 }

// Check compares the log with the file. It raises the log's revision if the log is behind the
// file, or another one that is permitted. Its error wraps ErrOther if the log is refused.
func (h *Mark) Check(ctx context.Context, log changelog.Log, newDatabase bool, logger *slog.Logger) error {
	h.cluster, h.raw = log.ClusterID(), log.Kind() == changelog.KindEtcd
	if !h.Known() {
		return nil
	}
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	same, err := h.isKnown(ctx, log)
	if err != nil {
		return err
	}
	now, above := h.revision(head.Revision), h.last.revision+slack
	switch {
	case same && now >= h.last.revision:
		if newDatabase {
			logger.Warn("--new-database is given and the database is the known one: take the flag away, or it permits the next change, too")
		}
		return nil
	case same:
		logger.Warn("the database is older than what was served before, as a restored backup is; going on above it", "revision", now, "served", h.last.revision, "above", above)
	case newDatabase:
		above = max(above, now+1) // watches of the other cluster must end, whatever this one has
		logger.Warn("serving another database than before, as --new-database says", "above", above, "before", h.last.String())
	default:
		from, to := changelog.RangeOf(object.Root)
		what := "objects"
		if h.raw {
			from, to = sqlstore.Raw{}.Range()
			what = "keys"
		}
		n, err := log.Count(ctx, from, to, head.Revision)
		if err != nil {
			return err
		}
		return h.Refuse(fmt.Sprintf("there is cluster %s with %d %s at revision %d", h.cluster, n, what, now))
	}
	if h.raw {
		above = changelog.LastID(above)
	}
	if same {
		return sqlstore.GoOnAbove(ctx, log, above)
	}
	return log.Raise(ctx, above)
}

// revision returns the revision that clients see for an id of the log.
func (h *Mark) revision(id int64) int64 {
	if h.raw {
		id, _ = changelog.Split(id)
	}
	return id
}

// isKnown tells whether log is the cluster that was served before, or a copy of it.
func (h *Mark) isKnown(ctx context.Context, log changelog.Log) (bool, error) {
	if h.cluster == h.last.cluster {
		return true, nil
	}
	return changelog.CopiedFrom(ctx, log, h.last.cluster)
}

// Refuse returns an error that says what was served, what is there now, and what to do.
func (h *Mark) Refuse(now string) error {
	return &otherError{fmt.Sprintf("this is not the database that was served from %s before: that had %s; now %s at %s; mount or name the right database, or say with --new-database (PLINTH_NEW_DATABASE=true) that another one is meant",
		filepath.Dir(h.path), h.last, now, h.database)}
}

func (s served) String() string {
	text := fmt.Sprintf("cluster %s at revision %d", s.cluster, s.revision)
	if s.database != "" {
		text += " in " + s.database
	}
	return text
}

// Remember writes the file, with the newest id that was served. After a failure the server goes
// on: the file is written again soon. Only the first failure in a row is logged.
func (h *Mark) Remember(newest int64, logger *slog.Logger) {
	err := h.write(h.revision(newest))
	if err != nil && !h.failing {
		logger.Warn("the newest revision could not be written to the data directory; it is tried again", "err", err)
	}
	h.failing = err != nil
}

func (h *Mark) write(revision int64) error {
	now := served{h.cluster, revision, h.database}
	if h.path == "" || now == h.last {
		return nil
	}
	if err := replace(h.path, fmt.Appendf(nil, "%s %d\n%s\n", now.cluster, now.revision, now.database)); err != nil {
		return err
	}
	h.last = now
	return nil
}

// replace replaces the file. The temporary one has always the same name, so that crashes leave one at most.
func replace(path string, text []byte) (err error) {
	temp := path + ".new"
	defer func() {
		if err != nil {
			_ = os.Remove(temp) // it takes space on a disk that may be full
		}
	}()
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	return atomicfile.Commit(f, path)
}

// Keep writes the file now and then until ctx ends, and once more then.
func (h *Mark) Keep(ctx context.Context, newest func() int64, logger *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			done = true
		}
		h.Remember(newest(), logger)
	}
}
