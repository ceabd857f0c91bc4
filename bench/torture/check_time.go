package torture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// told is what somebody knew at a time: that there is a revision.
type told struct {
	at       time.Duration
	revision int64
	what     fmt.Stringer
	id       string
}

// checkTimes wants calls in real time to be in the order of revisions: what ended before a call began
// may not be newer than what the call could see.
func (c *checker) checkTimes() {
	known := c.known()
	slices.SortStableFunc(known, func(a, b told) int { return cmp.Compare(a.at, b.at) })
	newest := make([]told, len(known)) // newest[i] is the highest revision of known[:i+1]
	for i, k := range known {
		newest[i] = k
		if i > 0 && newest[i-1].revision >= k.revision {
			newest[i] = newest[i-1]
		}
	}
	for _, call := range c.h.Calls {
		seen, is := c.couldSee(call)
		if !is {
			continue
		}
		i, _ := slices.BinarySearchFunc(known, call.Begin, func(k told, at time.Duration) int {
			if k.at < at {
				return -1
			}
			return 1
		})
		if i > 0 && newest[i-1].revision > seen {
			b := blame(Fresh, call)
			if newest[i-1].id != "" {
				b.Calls = append(b.Calls, newest[i-1].id)
			}
			c.add(b, "%v could see at most revision %d, and before it began %v", call, seen, newest[i-1].what)
		}
	}
}

// known returns which revisions were there at which time.
func (c *checker) known() (all []told) {
	for _, call := range c.h.Calls {
		if !call.OK() {
			continue
		}
		revision := call.Revision
		if rows := c.o.by[call.ID]; call.Writes() && len(rows) > 0 {
			revision = rows[0].Revision
		}
		at := call.End
		if call.Kind == Pages {
			at = call.Settled
		}
		all = append(all, told{at, revision, call, call.ID})
	}
	for _, w := range c.h.Watches {
		for _, s := range w.Streams {
			for _, e := range s.Events {
				all = append(all, told{e.At, e.Revision, seenEvent{w.Name, e}, ""})
			}
		}
	}
	return all
}

type seenEvent struct {
	watch string
	Event
}

func (e seenEvent) String() string {
	return fmt.Sprintf("watch %s was told at %.3fs: %s %s at %d", e.watch, e.At.Seconds(), e.Type, e.Key, e.Revision)
}

// couldSee returns the newest revision that a call can have seen, if that is known and has to be the newest.
func (c *checker) couldSee(call *Call) (int64, bool) {
	switch {
	case !call.OK():
		return 0, false
	case call.Writes():
		if rows := c.o.by[call.ID]; len(rows) > 0 {
			return rows[0].Revision, true
		}
		return 0, false
	case call.Read != Newest:
		return 0, false
	case call.Kind == Get:
		return c.o.until(call.Key, call.Revision), true
	}
	return call.Revision, call.Revision < math.MaxInt64
}
