package scrub

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Start is the place of a database that was away from the beginning.
const Start = "the database"

// InterruptedError says that the database went away while it was searched, and where. If it does so again at the
// same place, and is there otherwise, what is stored at that place makes it fail.
type InterruptedError struct {
	Place string
	Err   error
}

func (e *InterruptedError) Error() string { return fmt.Sprintf("%s: %v", e.Place, e.Err) }

// Unwrap returns why.
func (e *InterruptedError) Unwrap() error { return e.Err }

// away says that an error is no damage: the database is away, or whoever asked has gone.
func away(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, changelog.ErrClosed) ||
		errors.Is(err, changelog.ErrUnavailable) && !errors.Is(err, changelog.ErrDamaged)
}

// interrupted returns err as the error of a search that cannot go on.
func interrupted(err error, format string, args ...any) error {
	var e *InterruptedError
	if errors.As(err, &e) {
		return err
	}
	return &InterruptedError{Place: fmt.Sprintf(format, args...), Err: err}
}

// unless notes an error as a problem of what was read, and returns it if the database is away.
func (f *finder) unless(ctx context.Context, err error, in string) error {
	switch {
	case err == nil:
		return nil
	case away(ctx, err):
		return interrupted(err, "%s", in)
	}
	f.damage(in)
	f.found(nil, "%s: it cannot be read: %s", in, text(err))
	return nil
}

// damage notes that something of a table cannot be read.
func (f *finder) damage(in string) {
	f.partial = true
	f.damaged = append(f.damaged, strings.TrimPrefix(in, "table "))
}

// unlessGap is unless for what is read through tables: where these have gaps it fails for that reason.
func (f *finder) unlessGap(ctx context.Context, err error, in string) error {
	if err != nil && !away(ctx, err) && len(f.gaps) > 0 {
		return nil
	}
	return f.unless(ctx, err, in)
}

// text is an error's on one line.
func text(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

const (
	pageRows = 1000
	// mostGaps is how many gaps are looked for in one table. Each costs a few queries.
	mostGaps = 1000
	// mostKeys is how many keys of a gap are named.
	mostKeys = 10
)

// gap is a range of revisions whose rows cannot be read.
type gap struct {
	table        string
	after, until int64 // of the rows with after < id <= until
	err          error
	keys         []string // of some of the rows, as far as the index of keys has them
}

func (g *gap) String() string {
	var of string
	switch {
	case g.until == math.MaxInt64 && g.after == math.MinInt64:
		of = "no row"
	case g.until == math.MaxInt64:
		of = fmt.Sprintf("no row after revision %d", g.after)
	case g.after == math.MinInt64:
		of = fmt.Sprintf("no row up to revision %d", g.until)
	case g.after+1 == g.until:
		of = fmt.Sprintf("the row with revision %d cannot be read", g.until)
	default:
		of = fmt.Sprintf("the rows with revisions %d to %d cannot be read", g.after+1, g.until)
	}
	if strings.HasPrefix(of, "no row") {
		of += " can be read"
	}
	if len(g.keys) > 0 {
		of += " (" + strings.Join(g.keys, ", ") + ")"
	}
	return fmt.Sprintf("table %s: %s: %s", g.table, of, text(g.err))
}

// page reads rows after a revision, looks at them if they are wanted, and returns the last one's revision: after if
// there was none.
type page func(after int64, limit int, wanted bool) (last int64, err error)

// walk reads a table to its end, and goes on behind rows that cannot be read.
func (f *finder) walk(ctx context.Context, table string, next page) error {
	for after, gaps := int64(math.MinInt64), 0; ; {
		last, err := next(after, pageRows, true)
		switch {
		case err == nil && last == after:
			return nil
		case err == nil:
			after = last
			continue
		case away(ctx, err):
			return interrupted(err, "table %s after revision %d", table, last)
		}
		f.damage(table)
		if gaps++; gaps > mostGaps {
			f.found(nil, "table %s: what is after revision %d was not searched, because too much before it cannot be read", table, last)
			return nil
		}
		until, off := behind(ctx, last, next)
		if off != nil {
			return interrupted(off, "table %s after revision %d", table, last)
		}
		f.gaps = append(f.gaps, &gap{table: table, after: last, until: until, err: err})
		if until == math.MaxInt64 {
			return nil
		}
		after = until
	}
}

// behind returns from where on rows can be read again after last, behind which none can: math.MaxInt64 if nowhere. It
// tries steps of double length, and then halves the last one.
func behind(ctx context.Context, last int64, next page) (int64, error) {
	readable := func(after int64) (bool, error) {
		_, err := next(after, 1, false)
		if err != nil && away(ctx, err) {
			return false, err
		}
		return err == nil, nil
	}
	bad, good := last, last
	for step := int64(1); good == last; step *= 2 {
		at := int64(math.MaxInt64)
		if step > 0 && bad <= math.MaxInt64-step {
			at = bad + step
		}
		ok, err := readable(at)
		switch {
		case err != nil:
			return 0, err
		case ok:
			good = at
		case at == math.MaxInt64:
			return at, nil
		default:
			bad = at
		}
	}
	for bad+1 < good {
		middle := bad + int64(uint64(good-bad)/2) // the difference may be more than an int64 has
		ok, err := readable(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			good = middle
		} else {
			bad = middle
		}
	}
	return good, nil
}

// walkChains looks at all rows in order of their keys. It goes on behind rows that cannot be read, whose keys it
// notes; and if the index of keys cannot be read either, it begins anew without it.
func (f *finder) walkChains(ctx context.Context, z changelog.Frozen, floor int64) (*chains, error) {
	c := &chains{finder: f, floor: floor}
	err := c.walk(ctx, z, true)
	if err == nil || away(ctx, err) {
		return c, err
	}
	f.damage("log")
	f.found(nil, "index log_key_id of table log: it cannot be read after key %q, revision %d: %s", c.last.Key, c.last.Revision, text(err))
	c = &chains{finder: f, floor: floor}
	if err = c.walk(ctx, z, false); err != nil && !away(ctx, err) {
		f.found(nil, "table log: the order of changes could not be looked at after key %q: %s", c.last.Key, text(err))
		err = nil
	}
	return c, err
}

// walk looks at rows until their end. An error that is not away is of a row that the index of keys does not
// lead to.
func (c *chains) walk(ctx context.Context, z changelog.Frozen, indexed bool) error {
	for at, gaps := (changelog.Link{Revision: math.MinInt64}), 0; ; {
		before := at
		err := z.Links(ctx, at, indexed, pageRows, func(r *changelog.Row) error {
			at = changelog.Link{Key: r.Key, Revision: r.Revision}
			c.look(r)
			return nil
		})
		if err == nil {
			if at == before {
				return nil
			}
			continue
		}
		if gaps++; away(ctx, err) || !indexed || gaps > mostGaps {
			return interruptedIf(ctx, err, at)
		}
		next, ok, nextErr := z.NextLink(ctx, at)
		if nextErr != nil || !ok {
			return interruptedIf(ctx, errors.Join(err, nextErr), at)
		}
		c.skip(next, err)
		at = next
	}
}

func interruptedIf(ctx context.Context, err error, at changelog.Link) error {
	if away(ctx, err) {
		return interrupted(err, "index log_key_id of table log after key %q, revision %d", at.Key, at.Revision)
	}
	return err
}

// skip notes a row that cannot be read.
func (c *chains) skip(at changelog.Link, err error) {
	c.damage("log")
	c.unsure = at.Key
	for _, g := range c.gaps {
		if g.table == "log" && g.after < at.Revision && at.Revision <= g.until {
			if len(g.keys) < mostKeys {
				g.keys = append(g.keys, at.Key)
			}
			return
		}
	}
	c.found(&changelog.Row{Key: at.Key, Revision: at.Revision}, "it cannot be read: %s", text(err))
}
