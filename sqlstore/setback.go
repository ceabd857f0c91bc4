package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
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

// LastSetBack tells when the database was set back under this Store for the last time; nil: never.
func (s *Store) LastSetBack() *SetBack { return s.setBack.Load() }

// noticeSetBack makes the tail look when a statement has found the database set back.
func (s *Store) noticeSetBack(err error) {
	if errors.Is(err, changelog.ErrSetBack) {
		s.tail.lookFor(0)
	}
}

// mayBeLost says that b was written before the database was set back.
func (s *Store) mayBeLost(b *batch) bool { return b.appended.Head < s.tail.above }

// GoOnAbove makes a log that was set back go on above a revision, and notes it for processes that serve
// it: those that have served more of what is gone read their state anew, and say what they miss.
func GoOnAbove(ctx context.Context, log changelog.Log, above int64) error {
	if err := log.SetMarks(ctx, map[string]string{markSetBack: strconv.FormatInt(above, 10)}); err != nil {
		return err
	}
	return log.Raise(ctx, above)
}

// raisedAbove returns where the log goes on that was set back after revision applied was in it, or 0.
func (s *Store) raisedAbove(applied int64) (above int64, err error) {
	err = s.within(s.o.QueryTimeout, func(ctx context.Context) error {
		marks, err := s.log.Marks(ctx)
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
func (s *Store) goOnAbove() error {
	if s.tail.back == nil {
		if sure, err := s.isSetBack(); !sure {
			return err
		}
	}
	back := s.tail.back
	err := s.within(s.o.QueryTimeout, s.checkCluster)
	if errors.Is(err, changelog.ErrOther) && !back.other {
		s.o.Log.Error("another cluster's database is in the place of the one served; it is left alone, and requests are refused until the right one is back", "err", err)
		back.other = true
	}
	if err == nil {
		err = s.within(s.o.AppendTimeout, func(ctx context.Context) error { return GoOnAbove(ctx, s.log, back.above) })
	}
	if err == nil && !back.named {
		back.lost, err = s.findLost()
		back.named = err == nil
	}
	if err != nil {
		return fmt.Errorf("go on above revision %d in a database that was set back: %w", s.shown(back.above), err)
	}
	s.tail.above = back.above
	s.authors.stale.Store(true)
	s.sawRaise(back.above) // from here on writes are taken again
	if err := s.load(s.ctx); err != nil {
		return fmt.Errorf("read the state of a database that was set back: %w", err)
	}
	s.tail.back = nil
	if back.told && len(back.lost) == 0 { // this replica was behind, or has found out before the other one
		s.o.Log.Warn("another server has found the database set back; nothing that this one has served is lost", "above", s.shown(back.above))
		return nil
	}
	s.tellSetBack(back)
	return nil
}

// checkCluster returns ErrOther if the database is neither that of the cluster that was opened nor a copy of it:
// who restores a backup of the wrong one must not find it changed.
func (s *Store) checkCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	known := s.log.ClusterID()
	id, err := s.log.Cluster(ctx)
	if err != nil || id == known {
		return err
	}
	if copied, err := changelog.CopiedFrom(ctx, s.log, known); copied || err != nil {
		return err
	}
	return fmt.Errorf("%w: of %s instead of %s; restore the right one, or start anew to serve this one", changelog.ErrOther, id, known)
}

// isSetBack looks again, for a moment. If the database stays set back, it decides how to go on.
func (s *Store) isSetBack() (sure bool, err error) {
	var found *changelog.SetBackError
	for range setBackLooks {
		if _, err = s.boundedHead(); !errors.As(err, &found) {
			s.tail.look.Store(true)
			return false, err
		}
		s.pause(setBackPause)
	}
	served := s.served()
	s.tail.back = &goingBack{served: served, above: s.slackAbove(max(served, found.Found.Revision))}
	return true, nil
}

// slackAbove returns the last id of the revision that is Slack above that of id.
func (s *Store) slackAbove(id int64) int64 {
	if !s.raw {
		return id + Slack
	}
	revision, _ := changelog.Split(id)
	return changelog.LastID(revision + Slack)
}

// findLost returns the writes in memory that the log does not have, in order of their revisions. What was
// set back lost its newest rows, so from the newest one on all are gone until one that is there; older
// ones may have been compacted.
func (s *Store) findLost() ([]LostWrite, error) {
	known := s.state.known()
	slices.SortFunc(known, func(a, b LostWrite) int { return cmp.Compare(b.id, a.id) }) // newest first
	known = slices.CompactFunc(known, func(a, b LostWrite) bool { return a.id == b.id })
	gone, there := 0, len(known) // known[:gone] are; known[there], if there is one, is not
	for step := 1; gone < there; step *= 2 {
		i := min(gone+step-1, there-1)
		found, err := s.has(known[i])
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
		found, err := s.has(known[i])
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
		lost[i].Revision = s.shown(lost[i].id)
	}
	return lost, nil
}

// has says whether the log has the row of a write.
func (s *Store) has(w LostWrite) (there bool, err error) {
	err = s.within(s.o.QueryTimeout, func(ctx context.Context) error {
		found, at, err := s.log.Time(ctx, w.id)
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
func (s *Store) tellSetBack(back *goingBack) {
	told := &SetBack{At: time.Now(), Served: s.shown(back.served), Above: s.shown(back.above), Lost: back.lost}
	s.stats.setBacks.Add(1)
	s.stats.lostWrites.Add(int64(len(told.Lost)))
	s.setBack.Store(told)
	s.o.Log.Error("the database was set back to an older state under this server, as by promoting a standby that was behind or by restoring a backup; going on above all that was served",
		"served", told.Served, "above", told.Above, "lost", len(told.Lost), "first", told.Named(3))
	keys := told.keys()
	for _, k := range keys[:min(len(keys), namedLosses)] {
		s.o.Log.Error("an acknowledged write is gone", "key", k.Key, "revision", k.Revision, "deleted", k.Deleted, "writes", k.writes)
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
