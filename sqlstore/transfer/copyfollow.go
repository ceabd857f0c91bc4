package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

const (
	// closeBy is how many changes may be missing when the source is stopped.
	closeBy = 200
	// lastPatience bounds the end of a copy, during which nobody can write.
	lastPatience = time.Minute
)

// follow copies the changes that came to the source. Those of keys that are not copied yet come with
// their pages. ErrCompacted if some are not there any more.
func (c *copier) follow(ctx context.Context) error {
	for {
		_, end, err := c.followPage(ctx)
		if err != nil || end {
			return err
		}
	}
}

// followPage copies the next changes. It returns their number, and whether there were no more.
func (c *copier) followPage(ctx context.Context) (n int, end bool, err error) {
	limit := c.recent.Limit()
	rows, err := c.from.Rows(ctx, c.done.Revision, limit)
	if err != nil {
		return 0, false, fmt.Errorf("read the source's changes: %w", err)
	}
	if len(rows) == 0 {
		return 0, true, nil
	}
	c.recent.Read(len(rows), pages.Bytes(rows))
	head, err := c.from.Head(ctx) // after the rows: what was compacted before is missing
	if err == nil && head.Floor > c.done.Revision {
		err = changelog.ErrCompacted
	}
	if err != nil {
		return 0, false, fmt.Errorf("read the source's changes: %w", err)
	}
	if err := c.apply(ctx, rows); err != nil {
		return 0, false, err
	}
	c.done.Revision = rows[len(rows)-1].Revision
	c.done.Behind = max(0, head.Revision-c.done.Revision)
	c.done.Changes += int64(len(rows))
	c.tell()
	return len(rows), !changelog.Full(rows, limit), nil
}

// apply copies changes, in rounds.
func (c *copier) apply(ctx context.Context, rows []changelog.Row) error {
	origins, err := originsOf(ctx, c.from, rows)
	if err != nil {
		return fmt.Errorf("read the source's changes: %w", err)
	}
	var changes []sourced
	for i := range rows {
		if row := &rows[i]; row.Key < c.next {
			changes = append(changes, sourced{changelog.Change{Key: row.Key, Delete: row.Deleted, Value: row.Value}, origins[row.Revision]})
		}
	}
	for _, round := range rounds(changes) {
		if err := c.to.write(ctx, round); err != nil {
			return err
		}
	}
	return nil
}

// rounds parts changes so that each round has one of a key at most, and those of a key stay in their order. A change that a
// later one supersedes is left out. A delete is not superseded: what comes after it is another object. There are as many
// rounds as the objects of one key, and not as all deletes: each is a transaction or more, and a copy with too many of them
// never catches up with those who write.
func rounds(changes []sourced) (rounds [][]sourced) {
	type place struct{ round, i int }
	last := map[string]place{}
	for _, change := range changes {
		at, again := last[change.Key]
		if again && !rounds[at.round][at.i].Delete {
			rounds[at.round][at.i] = change
			continue
		}
		if again {
			at.round++
		}
		if at.round == len(rounds) {
			rounds = append(rounds, nil)
		}
		at.i = len(rounds[at.round])
		rounds[at.round] = append(rounds[at.round], change)
		last[change.Key] = at
	}
	return rounds
}

// catchUp follows the source until few changes are missing.
func (c *copier) catchUp(ctx context.Context) error {
	for {
		n, end, err := c.followPage(ctx)
		if err != nil || end && n <= closeBy {
			return err
		}
	}
}

var errStillWritten = errors.New("somebody goes on writing to the source, perhaps an older version of plinth that does not know that it has moved: stop it, and copy again")

// cutOver stops the source, copies the last changes and finishes the target. If that fails the source
// goes on.
func (c *copier) cutOver(ctx context.Context) error {
	if err := c.checkAbove(); err != nil {
		return err
	}
	if err := c.to.checkRun(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPatience)
	defer cancel()
	begin := time.Now()
	head, err := c.stop(ctx)
	if errors.Is(err, changelog.ErrMoved) {
		return err
	}
	if err == nil {
		err = c.copyRest(ctx, head)
	}
	if err != nil {
		return c.goOn(ctx, err)
	}
	if err := c.finish(ctx); err != nil {
		return fmt.Errorf("%w; the source stays stopped, because the target may be whole: copy again", err)
	}
	c.done.Stopped = time.Since(begin)
	return nil
}

// mostMark is how many bytes the value of a mark has at most.
const mostMark = 255

// movedTo returns what Log.Move notes: the cluster id of the log that goes on, and where it is.
func movedTo(clusterID, place string) string {
	return changelog.PlainText(clusterID+" "+place, mostMark)
}

// stop stops the source and returns its last revision. Whether an error of COMMIT has done so is not
// known, and to do it twice does no harm.
func (c *copier) stop(ctx context.Context) (head int64, err error) {
	to := c.moved
	if to == "" {
		to = movedTo(c.to.ClusterID(), c.o.Place)
	}
	if head, err = c.from.Move(ctx, to); errors.Is(err, changelog.ErrUnknown) {
		head, err = c.from.Move(ctx, to)
	}
	if err != nil {
		return 0, fmt.Errorf("stop the source: %w", err)
	}
	return head, nil
}

func (c *copier) copyRest(ctx context.Context, head int64) error {
	for c.done.Revision < head {
		n, _, err := c.followPage(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			c.done.Revision = head // a floor without rows
		}
	}
	if err := c.checkAbove(); err != nil {
		return err
	}
	now, err := c.from.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the source's head: %w", err)
	}
	if now.Revision > head {
		return errStillWritten
	}
	return nil
}

// goOn lets the source go on after an error, unless it was stopped by an earlier copy.
func (c *copier) goOn(ctx context.Context, because error) error {
	if c.moved != "" {
		return because
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPatience)
	defer cancel()
	if err := c.to.checkRun(ctx); errors.Is(err, ErrOvertaken) {
		return err
	}
	if _, err := c.from.Move(ctx, ""); err != nil {
		return fmt.Errorf("%w; the source may be stopped, because it could not be let go on: %w", because, err)
	}
	return because
}

// TakeBack lets a log go on that Move has stopped. It continues above what the log with its objects
// has served meanwhile, at least as long as that has drawn fewer than onlineGap revisions: clients
// that come back from there list anew, and so do those of the next copy.
func TakeBack(ctx context.Context, log changelog.Log) error {
	head, err := log.Head(ctx)
	if err == nil {
		err = log.Raise(ctx, head.Revision+2*onlineGap)
	}
	if err == nil {
		_, err = log.Move(ctx, "")
	}
	return err
}
