package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
	"golang.org/x/sync/errgroup"
)

const (
	// mostWalk is how long pages of one revision are read, before the changes that came meanwhile are
	// copied. It is far less than a history lasts by default. Where it lasts less, so does the walk, in
	// smaller pages.
	mostWalk, leastWalk = 2 * time.Second, 20 * time.Millisecond

	pagesBetween = 2 // that were read and not yet written
)

// keyRange is a page of the source: its objects with keys in [from, to).
type keyRange struct {
	from, to string
	rows     []changelog.Row
	origins  map[int64]changelog.Origin
	last     bool
}

// walk copies all objects.
func (c *copier) walk(ctx context.Context) error {
	for !c.walked {
		if err := c.walkOn(ctx); err != nil {
			return err
		}
		if err := c.follow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// restart has walk begin anew and compare.
func (c *copier) restart(ctx context.Context) error {
	head, err := c.from.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the source's head: %w", err)
	}
	c.next, c.walked, c.compare = "", false, true
	c.walkFor, c.mostRows = max(c.walkFor/2, leastWalk), max(c.mostRows/2, pages.First)
	c.done.Objects, c.done.Revision = 0, head.Revision
	return nil
}

// walkOn copies pages of one revision for a while. It reads the next ones while it writes.
func (c *copier) walkOn(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	pages := make(chan keyRange, pagesBetween)
	group.Go(func() error {
		defer close(pages)
		return c.read(ctx, pages)
	})
	group.Go(func() error {
		for page := range pages {
			if err := c.writePage(ctx, page); err != nil {
				return err
			}
			c.next, c.walked = page.to, page.last
			c.done.Objects += int64(len(page.rows))
			c.tell()
		}
		return nil
	})
	return group.Wait()
}

func (c *copier) read(ctx context.Context, pages chan<- keyRange) error {
	revision, next := c.done.Revision, c.next
	for end := time.Now().Add(c.walkFor); ; {
		page, err := c.readPage(ctx, next, revision)
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
		if next = page.to; page.last || time.Now().After(end) {
			return nil
		}
	}
}

func (c *copier) readPage(ctx context.Context, from string, revision int64) (p keyRange, err error) {
	p.from, p.to = from, changelog.End
	limit := min(c.pages.Limit(), c.mostRows)
	if p.rows, err = c.from.State(ctx, p.from, p.to, revision, limit); err != nil {
		return p, err
	}
	if p.last = !changelog.Full(p.rows, limit); !p.last {
		p.to = changelog.After(p.rows[len(p.rows)-1].Key)
	}
	p.origins, err = originsOf(ctx, c.from, p.rows)
	c.pages.Read(len(p.rows), pages.Bytes(p.rows))
	return p, err
}

func originsOf(ctx context.Context, log changelog.Log, rows []changelog.Row) (map[int64]changelog.Origin, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].Revision
	}
	return log.Origins(ctx, ids)
}

// writePage makes the target's objects with keys in the page's range those of the page.
func (c *copier) writePage(ctx context.Context, p keyRange) error {
	var found map[string]copiedRow
	if c.compare {
		var err error
		if found, err = c.findTargets(ctx, p.from, p.to); err != nil {
			return fmt.Errorf("read the target: %w", err)
		}
	}
	var changes []sourced
	for i := range p.rows {
		row := &p.rows[i]
		old, origin := found[row.Key], p.origins[row.Revision]
		delete(found, row.Key)
		if old.Revision == 0 || origin != old.origin || string(row.Value) != string(old.Value) {
			changes = append(changes, sourced{changelog.Change{Key: row.Key, Expect: old.Revision, Value: row.Value}, origin})
		}
	}
	for key, old := range found {
		changes = append(changes, sourced{Change: changelog.Change{Key: key, Expect: old.Revision, Delete: true, Value: old.Value}})
	}
	return c.to.write(ctx, changes)
}

// copiedRow is an object in the target.
type copiedRow struct {
	changelog.Row
	origin changelog.Origin
}

// findTargets returns the target's objects with keys in [from, to), which an earlier copy has written.
func (c *copier) findTargets(ctx context.Context, from, to string) (map[string]copiedRow, error) {
	head, err := c.to.Head(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]copiedRow)
	next := func(from string, limit int) ([]changelog.Row, error) {
		return c.to.State(ctx, from, to, head.Revision, limit)
	}
	for rows, err := range pages.ByKey(from, next) {
		if err != nil {
			return nil, err
		}
		origins, err := originsOf(ctx, c.to, rows)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[row.Key] = copiedRow{row, origins[row.Revision]}
		}
	}
	return found, nil
}
