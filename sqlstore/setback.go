package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// A database can be set back under a running Store: a standby that was behind is promoted, or a backup is
// restored. Then acknowledged writes are gone, and their revisions are given out anew. Each statement that
// matters carries the Store's Witness, so that the first one fails, whoever sends it, and with it all
// others: nothing is written, and Sync fails. The tail then raises the log above every revision served,
// reads the state anew, and names what is gone, unless the database is that of another cluster. Watches and
// lists of before get ErrCompacted, since the floor is above them. Other replicas find the floor above what
// they know, and do the same.

// SetBack tells of a database that was set back under a Store. Revisions are those that clients see.
type SetBack struct {
	At     time.Time // when it was found
	Served int64     // newest revision of before
	Above  int64     // all new revisions are above this one
	Lost   []LostWrite
}

// LostWrite is an acknowledged write that is gone, as far as the Store had it in memory: objects as they
// were, and the recent changes that led there.
type LostWrite struct {
	Key      string
	Revision int64
	Deleted  bool

	id, at int64
}

const (
	// Slack is how far above what this Store has served the log goes on: other replicas may have
	// served more of what is gone.
	Slack = 1_000_000

	// A database that answers from several servers may lag behind itself. What is found is believed
	// only when it stays so.
	setBackLooks = 5
	setBackPause = 100 * time.Millisecond

	// markSetBack is the mark with the revision that the log goes on above.
	markSetBack = "setback"

	namedLosses = 1000 // keys with lost writes that are logged one by one
)

// errMayBeLost is told to those whose commit was acknowledged by the database, but not to them, before
// the database was set back.
var errMayBeLost = fmt.Errorf("%w: the database was set back since", changelog.ErrUnknown)

// goingBack is what the tail does about a database that was set back, until the state is read anew.
type goingBack struct {
	served int64
	above  int64
	told   bool // by another replica, which has raised the log
	lost   []LostWrite
	named  bool // lost is known
	other  bool // the log says that another cluster's database is there
}

// setBacks finds out whether the database was set back, and brings the log above everything served. All but last
// belongs to the tail's goroutine.
type setBacks struct {
	*shared
	state   *state
	hints   *hints
	witness *witness
	authors *authors
	loader  *loader

	back  *goingBack // while the database is known to be set back and the state is still that of before
	above int64      // what was written up to here may be lost, because the database was set back
	last  atomic.Pointer[SetBack]
}

// mayBeLost says that b was written before the database was set back.
func (sb *setBacks) mayBeLost(b *batch) bool { return b.appended.Head < sb.above }

// GoOnAbove makes a log that was set back go on above a revision, and notes it for processes that serve
// it: those that have served more of what is gone read their state anew, and say what they miss.
func GoOnAbove(ctx context.Context, log changelog.Log, above int64) error {
	if err := log.SetMarks(ctx, map[string]string{markSetBack: strconv.FormatInt(above, 10)}); err != nil {
		return err
	}
	return log.Raise(ctx, above)
}

// raisedAbove returns where the log goes on that was set back after revision applied was in it, or 0.
func (sb *setBacks) raisedAbove(applied int64) (above int64, err error) {
	err = sb.within(sb.o.QueryTimeout, func(ctx context.Context) error {
		marks, err := sb.log.Marks(ctx)
		above, _ = strconv.ParseInt(marks[markSetBack], 10, 64)
		return err
	})
	if above <= applied {
		above = 0
	}
	return above, err
}

// goOnAbove brings the log above everything served and the state to what is there. After an error it is
// called again, and goes on where it was.
func (sb *setBacks) goOnAbove() error {
	if sb.back == nil {
		if sure, err := sb.isSetBack(); !sure {
			return err
		}
	}
	back := sb.back
	err := sb.within(sb.o.QueryTimeout, sb.checkCluster)
	if errors.Is(err, changelog.ErrOther) && !back.other {
		sb.o.Log.Error("another cluster's database is in the place of the one served; it is left alone, and requests are refused until the right one is back", "err", err)
		back.other = true
	}
	if err == nil {
		err = sb.within(sb.o.AppendTimeout, func(ctx context.Context) error { return GoOnAbove(ctx, sb.log, back.above) })
	}
	if err == nil && !back.named {
		back.lost, err = sb.findLost()
		back.named = err == nil
	}
	if err != nil {
		return fmt.Errorf("go on above revision %d in a database that was set back: %w", sb.shown(back.above), err)
	}
	sb.above = back.above
	sb.authors.stale.Store(true)
	sb.witness.sawRaise(back.above) // from here on writes are taken again
	if err := sb.loader.load(sb.ctx); err != nil {
		return fmt.Errorf("read the state of a database that was set back: %w", err)
	}
	sb.back = nil
	if back.told && len(back.lost) == 0 { // this replica was behind, or has found out before the other one
		sb.o.Log.Warn("another server has found the database set back; nothing that this one has served is lost", "above", sb.shown(back.above))
		return nil
	}
	sb.tellSetBack(back)
	return nil
}

// checkCluster returns ErrOther if the database is neither that of the cluster that was opened nor a copy of it:
// who restores a backup of the wrong one must not find it changed.
func (sb *setBacks) checkCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	known := sb.log.ClusterID()
	id, err := sb.log.Cluster(ctx)
	if err != nil || id == known {
		return err
	}
	if copied, err := changelog.CopiedFrom(ctx, sb.log, known); copied || err != nil {
		return err
	}
	return fmt.Errorf("%w: of %s instead of %s; restore the right one, or start anew to serve this one", changelog.ErrOther, id, known)
}

// isSetBack looks again, for a moment. If the database stays set back, it decides how to go on.
func (sb *setBacks) isSetBack() (sure bool, err error) {
	var found *changelog.SetBackError
	for range setBackLooks {
		if _, err = sb.boundedHead(); !errors.As(err, &found) {
			sb.hints.look.Store(true)
			return false, err
		}
		_ = sleep.For(sb.ctx, setBackPause)
	}
	served := sb.witness.served()
	sb.back = &goingBack{served: served, above: sb.beyond(max(served, found.Found.Revision), Slack)}
	return true, nil
}

// findLost returns the writes in memory that the log does not have, in order of their revisions. What was
// set back lost its newest rows, so from the newest one on all are gone until one that is there; older
// ones may have been compacted.
func (sb *setBacks) findLost() ([]LostWrite, error) {
	known := sb.state.known()
	slices.SortFunc(known, func(a, b LostWrite) int { return cmp.Compare(b.id, a.id) }) // newest first
	known = slices.CompactFunc(known, func(a, b LostWrite) bool { return a.id == b.id })
	gone, there := 0, len(known) // known[:gone] are; known[there], if there is one, is not
	for step := 1; gone < there; step *= 2 {
		i := min(gone+step-1, there-1)
		found, err := sb.has(known[i])
		if err != nil {
			return nil, err
		}
		if found {
			there = i
			break
		}
		gone = i + 1
	}
	for gone < there {
		i := (gone + there) / 2
		found, err := sb.has(known[i])
		switch {
		case err != nil:
			return nil, err
		case found:
			there = i
		default:
			gone = i + 1
		}
	}
	lost := known[:gone:gone]
	slices.Reverse(lost)
	for i := range lost {
		lost[i].Revision = sb.shown(lost[i].id)
	}
	return lost, nil
}

// has says whether the log has the row of a write.
func (sb *setBacks) has(w LostWrite) (there bool, err error) {
	err = sb.within(sb.o.QueryTimeout, func(ctx context.Context) error {
		found, at, err := sb.log.Time(ctx, w.id)
		there = found == w.id && at == w.at
		return err
	})
	return there, err
}

// known returns all writes that are in memory: those in force, and those in the window.
func (st *state) known() (known []LostWrite) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	for _, r := range st.resources {
		r.entries.Scan(func(key string, e *Entry) bool {
			known = append(known, LostWrite{Key: key, id: e.Revision, at: e.At})
			return true
		})
		for _, ev := range r.events.all() {
			e := ev.Entry
			known = append(known, LostWrite{Key: e.Key, Deleted: ev.Type == Delete, id: e.Revision, at: e.At})
		}
	}
	return known
}

// tellSetBack logs and counts what has happened.
func (sb *setBacks) tellSetBack(back *goingBack) {
	told := &SetBack{At: time.Now(), Served: sb.shown(back.served), Above: sb.shown(back.above), Lost: back.lost}
	sb.stats.setBacks.Add(1)
	sb.stats.lostWrites.Add(int64(len(told.Lost)))
	sb.last.Store(told)
	sb.o.Log.Error("the database was set back to an older state under this server, as by promoting a standby that was behind or by restoring a backup; going on above all that was served",
		"served", told.Served, "above", told.Above, "lost", len(told.Lost), "first", told.Named(3))
	keys := told.keys()
	for _, k := range keys[:min(len(keys), namedLosses)] {
		sb.o.Log.Error("an acknowledged write is gone", "key", k.Key, "revision", k.Revision, "deleted", k.Deleted, "writes", k.writes)
	}
}

// lostKey is a key with its newest lost write.
type lostKey struct {
	LostWrite
	writes int // of the key that are lost
}

// keys returns what is lost by key, in order of revisions. Keys with few lost writes come first: what is
// written all the time, such as renewals of Leases, is missed least.
func (b *SetBack) keys() (keys []lostKey) {
	at := map[string]int{}
	for _, w := range b.Lost {
		i, is := at[w.Key]
		if !is {
			i, at[w.Key] = len(keys), len(keys)
			keys = append(keys, lostKey{})
		}
		keys[i] = lostKey{w, keys[i].writes + 1}
	}
	slices.SortFunc(keys, func(a, b lostKey) int {
		return cmp.Or(cmp.Compare(a.writes, b.writes), cmp.Compare(a.Revision, b.Revision))
	})
	return keys
}

// Named returns in words what is lost of the first keys, at most n.
func (b *SetBack) Named(n int) string {
	var text []string
	keys := b.keys()
	for _, k := range keys[:min(n, len(keys))] {
		what := ""
		if k.Deleted {
			what = " (deleted)"
		}
		text = append(text, fmt.Sprintf("%s at %d%s", strings.ToValidUTF8(k.Key, "\ufffd"), k.Revision, what))
	}
	if more := len(keys) - len(text); more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, ", ")
}
