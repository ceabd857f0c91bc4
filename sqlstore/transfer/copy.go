package transfer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

var (
	// ErrCannotResume says that a Copy cannot go on with what is in the target.
	ErrCannotResume = errors.New("the copy cannot go on with it")

	// ErrCopied says that a Copy finds its target finished by an earlier one, which stopped the source.
	ErrCopied = errors.New("everything was copied before")
)

// CopyOptions say how Copy works.
type CopyOptions struct {
	// Online says that the source may be served meanwhile. At the end the source is stopped by
	// Log.Move, which tells where the target is by Place.
	Online bool
	Place  string
	// Prepare ends an online copy before the source is stopped. The target stays half copied, and the
	// same Copy without Prepare finishes it.
	Prepare bool
	// Progress, which may be nil, is called now and then.
	Progress func(Copied)
}

// Copied is what a Copy has done.
type Copied struct {
	Objects  int64         // that were copied, or found in the target as they are
	Changes  int64         // of the source that came meanwhile
	Revision int64         // of the source, up to which all is copied
	Behind   int64         // how many revisions of the source were missing when that was looked at last
	Stopped  time.Duration // how long nobody could write, if the source was online
}

// onlineGap is how many revisions a source may draw while it is copied.
const onlineGap = 1_000_000_000

// Copy fills an empty log with the current state of another, in any dialect, and with who wrote it.
// Nobody else writes to the target. The same holds for the source, or else CopyOptions.Online.
//
// History stays behind: the copies get revisions above all that from ever served, which makes clients
// of the old log list anew and never mistake one object's version for another's. The target remembers
// where its objects came from; see CopiedFrom.
//
// An error after the first was copied wraps ErrHalfCopied. The next Copy from the same source goes on:
// it compares what both have and writes what differs. If an earlier Copy has finished and stopped the
// source, the error is ErrCopied.
//
// A source that is online is copied page by page in the order of keys, each page as it is at the
// revision up to which changes of the keys before were copied; so no revision is read when it is long
// past. When only few changes are missing, Move stops the source, and the rest is copied. Until then
// the source is only read.
func Copy(ctx context.Context, to, from changelog.Log, o CopyOptions) (Copied, error) {
	return newCopier(to, from, o).copy(ctx)
}

// copier is a Copy that runs.
type copier struct {
	to    *target
	from  changelog.Log
	o     CopyOptions
	above int64  // revision that the source must not come to
	moved string // the source is stopped by a copy that was cut off, which has noted this

	next     string // keys below are copied, as they were at done.Revision
	walked   bool   // all are
	pages    pages.Pager
	mostRows int // of a page, at most
	walkFor  time.Duration
	compare  bool // the target may hold something at or above next

	recent pages.Pager // for changes of the source

	done Copied
	told time.Time
}

func newCopier(to, from changelog.Log, o CopyOptions) *copier {
	return &copier{to: newTarget(to), from: from, o: o, walkFor: mostWalk, mostRows: pages.Most}
}

func (c *copier) copy(ctx context.Context) (Copied, error) {
	if c.from.Kind() != changelog.KindAPI || c.to.Kind() != changelog.KindAPI {
		return Copied{}, fmt.Errorf("copy: %w: only the objects of a Kubernetes API are copied", changelog.ErrKind)
	}
	if err := c.prepare(ctx); err != nil {
		return Copied{}, err
	}
	err := c.run(ctx)
	if errors.Is(err, ErrOvertaken) {
		return c.done, fmt.Errorf("copy: %w", err)
	}
	if err != nil {
		return c.done, fmt.Errorf("%w, of %d objects: %w", changelog.ErrHalfCopied, c.done.Objects, err)
	}
	return c.done, nil
}

// run copies until all is done. If the copy was held up for longer than the history lasts, deletes are
// missing, and it compares everything.
func (c *copier) run(ctx context.Context) error {
	err := c.runOnce(ctx)
	for errors.Is(err, changelog.ErrCompacted) {
		if err = c.restart(ctx); err == nil {
			err = c.runOnce(ctx)
		}
	}
	return err
}

func (c *copier) runOnce(ctx context.Context) error {
	if err := c.walk(ctx); err != nil {
		return err
	}
	if !c.o.Online {
		return c.finish(ctx)
	}
	if err := c.catchUp(ctx); err != nil || c.o.Prepare {
		return err
	}
	return c.cutOver(ctx)
}

// prepare makes sure that the source can be copied, and that the target is empty, which it then marks,
// or holds what an earlier copy of the same source has left.
func (c *copier) prepare(ctx context.Context) error {
	marks, err := c.from.Marks(ctx)
	switch noted := marks[changelog.MarkMoved]; {
	case err != nil:
		return fmt.Errorf("copy: read the source's marks: %w", err)
	case marks[changelog.MarkCopying] != "":
		return fmt.Errorf("copy: the source: %v; copy from the database that has all", changelog.ErrHalfCopied)
	case noted != "" && !strings.HasPrefix(noted, c.to.ClusterID()+" "):
		return fmt.Errorf("copy: the source: %w; copy from that one, or take this one back first", changelog.Moved(noted))
	default:
		c.moved = noted
	}
	source, err := c.from.Head(ctx)
	if err != nil {
		return fmt.Errorf("copy: read the source's head: %w", err)
	}
	c.done.Revision = source.Revision
	if marks, err = c.to.Marks(ctx); err != nil {
		return fmt.Errorf("copy: read the target's marks: %w", err)
	}
	switch {
	case marks[changelog.MarkCopying] != "":
		err = c.resume(ctx, marks)
	case c.moved != "" && marks[changelog.MarkOrigin+c.from.ClusterID()] != "":
		err = ErrCopied
	default:
		err = c.begin(ctx)
	}
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}

// resume goes on with what an earlier copy has left in the target.
func (c *copier) resume(ctx context.Context, marks map[string]string) error {
	above, err := strconv.ParseInt(marks[changelog.MarkAbove], 10, 64)
	if err != nil || marks[changelog.MarkCopying] != c.from.ClusterID() {
		return fmt.Errorf("the target: %w, from another database: %w", changelog.ErrHalfCopied, ErrCannotResume)
	}
	c.above, c.compare = above, true
	if err := c.checkAbove(); err != nil {
		return fmt.Errorf("the target: %w: %w", changelog.ErrHalfCopied, err)
	}
	if err := c.to.takeOver(ctx); err != nil {
		return fmt.Errorf("%w: %w", changelog.ErrHalfCopied, err)
	}
	return nil
}

// checkAbove refuses a source whose revisions have come to those of the target: clients would mistake
// versions for others.
func (c *copier) checkAbove() error {
	if c.done.Revision > c.above {
		return fmt.Errorf("%w: the source has come to revision %d, and those in the target begin at %d", ErrCannotResume, c.done.Revision, c.above+1)
	}
	return nil
}

// begin raises an empty target above the source's revisions and marks it.
func (c *copier) begin(ctx context.Context) error {
	head, err := checkEmpty(ctx, c.to, false)
	if err != nil {
		return err
	}
	c.above = max(c.done.Revision, head.Revision) + 1
	if c.o.Online {
		c.above += onlineGap
	}
	return c.to.begin(ctx, c.above, map[string]string{changelog.MarkCopying: c.from.ClusterID(), changelog.MarkAbove: strconv.FormatInt(c.above, 10)})
}

// finish marks the copy as finished, and as a descendant of the source and of all logs that
// the source was copied from.
func (c *copier) finish(ctx context.Context) error {
	inherited, err := c.from.Marks(ctx)
	if err != nil {
		return fmt.Errorf("read the source's marks: %w", err)
	}
	return c.to.finish(ctx, changelog.Descent(c.from.ClusterID(), c.done.Revision, inherited))
}

// tellEvery is how often progress is told.
const tellEvery = time.Second

func (c *copier) tell() {
	if c.o.Progress != nil && time.Since(c.told) >= tellEvery {
		c.told = time.Now()
		c.o.Progress(c.done)
	}
}
