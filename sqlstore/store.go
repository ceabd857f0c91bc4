package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

// closeGrace bounds how long Close waits for a database that does not answer.
const closeGrace = 10 * time.Second

// Store serves the keys of one Log. Its methods are safe for concurrent use. Each of its parts has its own fields, and
// pointers to the parts that it needs.
type Store struct {
	*shared

	state    state
	cache    cache
	lender   lender
	lag      lag
	hints    hints
	pipe     pipe
	witness  witness
	health   health
	authors  authors
	others   Others
	values   *values // with its address Current would be too long to be inlined, and would allocate each view
	heads    headReader
	loader   loader
	setBacks setBacks
	tail     tail
	commits  committer
	objects  objects
	keys     Keys
	compact  compactor

	brought int64 // see Brought

	wg        sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Revision returns the newest revision that reads see.
func (s *Store) Revision() int64 { return s.state.applied.Load() }

// Floor returns the compacted revision as far as this Store knows it.
func (s *Store) Floor() int64 { return s.state.floor.Load() }

// Sync waits until reads see everything that was committed by any process before the
// call, and returns the revision they see. ErrUnavailable if the database cannot tell.
func (s *Store) Sync(ctx context.Context) (int64, error) { return s.heads.sync(ctx) }

// LastSetBack tells when the database was set back under this Store for the last time; nil: never.
func (s *Store) LastSetBack() *SetBack { return s.setBacks.last.Load() }

// CompactTo moves the floor up to revision now, whatever the history is, and returns
// when the rows below are deleted. The newest row always stays, so that the floor may
// end one below revision. For tests and tools. Raw keys are compacted by Keys.CutTo.
func (s *Store) CompactTo(ctx context.Context, revision int64) error {
	return s.compact.request(ctx, revision)
}

// CompactionBehind returns for how long rows have stayed that are older than the history, because
// compaction fails, does not keep up, or somebody still reads them; 0: compaction is not behind.
func (s *Store) CompactionBehind() time.Duration { return s.compact.behind.now() }

// MaxValueBytes bounds the value of a change.
func (s *Store) MaxValueBytes() int { return s.o.MaxValueBytes }

// Keep holds on to view, so that later pages of a list are read from memory. The
// oldest kept view of a resource goes when there are more than Options.Snapshots, and
// all go that fall below the floor.
func (s *Store) Keep(view View) {
	if v, ok := view.(*stateView); ok {
		v.values.state.keepView(v)
	}
}

// Fetched yields entries in their order, with those that are away as they are in the log. It reads ahead
// of who asks for few by a few, and by more as it goes on. The last pair may be an error: ErrCompacted if
// a value was replaced and compacted meanwhile.
func (s *Store) Fetched(ctx context.Context, entries iter.Seq[*Entry]) iter.Seq2[*Entry, error] {
	return s.values.fetched(ctx, entries)
}

// Keys returns the face for raw keys. That of a Store of objects refuses transactions.
func (s *Store) Keys() *Keys { return &s.keys }

// Healthy returns nil, or why the database cannot be used now. Reads that do not ask
// for the most recent state go on from memory meanwhile.
func (s *Store) Healthy() error { return s.health.healthy() }

// Outages returns the last times in which the database could not be used, newest last.
func (s *Store) Outages() []Outage { return s.health.outages() }

// Lag returns for how long reads have lacked what other processes wrote, as far as this one knows: 0 if
// nothing is missing.
func (s *Store) Lag() time.Duration { return s.lag.now() }

// Wait returns when reads see revision. ErrFuture if ctx ends before.
func (s *Store) Wait(ctx context.Context, revision int64) error { return s.state.wait(ctx, revision) }

// Hurry makes no change wait from now on, because the process is about to end.
func (s *Store) Hurry() { s.commits.hurry() }

// SetRoom lets the state of objects take about so many bytes from now on, but not more than Options.StateBytes. What
// is counted are keys and values; with what readers derive of these, entries may take more than was planned.
func (s *Store) SetRoom(bytes int) { s.state.setRoom(bytes) }

// Unreadable returns the objects whose keys begin with prefix, all of one resource, that cannot be read; nil if all
// can. Those that could not be decrypted are tried again. A value that has left memory counts as readable
// until it is read. Where nothing is unreadable, this costs no lock.
func (s *Store) Unreadable(prefix string) *UnreadableError { return s.values.unreadable(prefix) }

// Damaged returns how many objects are damaged, as far as this process has read them since they were. It is at least 1
// while the database has answered of late that it is damaged.
func (s *Store) Damaged() int {
	damaged := int(s.state.damaged.Load())
	if s.health.saysDamaged() {
		return max(damaged, 1)
	}
	return damaged
}

// Borrow waits until who may read so many bytes into memory, and returns a function that says that they are not
// needed any more, to be called once. A request for more than one may have gets what one may have. ErrBusy if
// that takes too long, or the error of ctx.
func (s *Store) Borrow(ctx context.Context, who string, bytes int) (giveBack func(), err error) {
	bytes, err = s.lender.take(ctx, who, bytes)
	if err != nil {
		return nil, err
	}
	uncount := s.state.countLent(bytes)
	return func() {
		uncount()
		s.lender.put(who, bytes)
	}, nil
}

// Others returns what other processes tell the Store, and the Store them.
func (s *Store) Others() *Others { return &s.others }

// Open reads the whole state of log and starts the Store's goroutines. The Store owns
// log from then on and closes it; if Open fails, log is still the caller's.
func Open(ctx context.Context, log changelog.Log, o Options) (*Store, error) {
	s := newStore(log, o.withDefaults())
	if err := s.loader.load(ctx); err != nil {
		s.cancel()
		return nil, fmt.Errorf("load state: %w", err)
	}
	var err error
	if s.brought, err = changelog.Brought(ctx, log); err != nil {
		s.cancel()
		return nil, fmt.Errorf("read what was copied: %w", err)
	}
	s.start()
	return s, nil
}

func newStore(log changelog.Log, o Options) *Store {
	s := &Store{shared: &shared{log: log, o: o, stop: make(chan struct{})}, values: new(values)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.compact.init()
	s.connect()
	if _, raw := o.Format.(Raw); raw {
		s.useKeys()
	} else {
		s.useObjects()
	}
	o = s.o
	s.authors.most = mostAuthors
	if o.Author != (changelog.Author{}) {
		s.authors.own = &changelog.Origin{Author: o.Author}
	}
	s.cache.limit = o.CacheBytes
	s.lender.all = lendBytes(o.StateBytes)
	s.state.init(o, &s.cache)
	s.pipe = newPipe()
	s.hints.wake = make(chan struct{}, 1)
	s.tail.done = make(chan struct{})
	s.values.polls = make(chan struct{}, logPolls)
	s.commits.init(o)
	s.heads.init()
	s.others.init()
	s.health.outage.log, s.health.outage.count = o.Log, &s.stats.outages
	return s
}

// connect gives each part the ones that it needs. Those above are not known to those below, but for the face.
func (s *Store) connect() {
	s.witness.shared, s.witness.state = s.shared, &s.state
	s.health.shared = s.shared
	s.authors.shared = s.shared
	o := &s.others
	o.shared, o.state, o.hints = s.shared, &s.state, &s.hints
	v := s.values
	v.shared, v.state, v.cache = s.shared, &s.state, &s.cache
	h := &s.heads
	h.shared, h.state, h.hints, h.lag, h.health = s.shared, &s.state, &s.hints, &s.lag, &s.health
	l := &s.loader
	l.shared, l.state, l.values, l.witness, l.authors = s.shared, &s.state, v, &s.witness, &s.authors
	sb := &s.setBacks
	sb.shared, sb.state, sb.hints, sb.witness, sb.authors, sb.loader = s.shared, &s.state, &s.hints, &s.witness, &s.authors, l
	s.compact.shared, s.compact.state = s.shared, &s.state

	t := &s.tail
	t.shared, t.state, t.values, t.hints, t.pipe, t.lag = s.shared, &s.state, v, &s.hints, &s.pipe, &s.lag
	t.witness, t.health, t.loader, t.setBacks, t.others = &s.witness, &s.health, l, sb, o
	c := &s.commits
	c.shared, c.health, c.heads, c.hints = s.shared, &s.health, h, &s.hints
	c.witness, c.authors, c.pipe = &s.witness, &s.authors, &s.pipe

	ob := &s.objects
	ob.shared, ob.state, ob.values, ob.authors, ob.setBacks = s.shared, &s.state, v, &s.authors, sb
	ob.commits, ob.compact = c, &s.compact
	k := &s.keys
	k.shared, k.state, k.cache, k.values, k.hints, k.heads = s.shared, &s.state, &s.cache, v, &s.hints, h
	k.setBacks, k.commits, k.compact = sb, c, &s.compact
}

// useObjects makes s a Store of objects.
func (s *Store) useObjects() {
	s.tail.face, s.commits.face, s.compact.face = &s.objects, &s.objects, &s.objects
	s.keys.refused = fmt.Errorf("%w: objects are written one by one", changelog.ErrKind)
	s.limits = limits{isFull: changelog.Full, polled: math.MaxInt}
	s.values.newEntry = s.objects.newEntry
}

// useKeys makes s a Store of raw keys. Their history stays until CutTo, none of it is kept beside the log, and what their
// values take in memory has a bound of its own.
func (s *Store) useKeys() {
	s.tail.face, s.commits.face, s.compact.face = &s.keys, &s.keys, &s.keys
	s.objects.refused = fmt.Errorf("%w: raw keys are written by transactions", changelog.ErrKind)
	s.ids = ids{sub: changelog.SubBits, empty: changelog.LastID(firstRevision)}
	s.limits = limits{
		isFull:    func(rows []changelog.Row, limit int) bool { return len(rows) >= limit },
		resident:  s.o.CacheBytes,
		polled:    pollBytes,
		firstPoll: pages.Pager{N: rawFirst, Weight: pollBytes},
	}
	s.values.newEntry = rawEntry
	s.o.History, s.o.Retention, s.o.StateBytes = -1, nil, 0
	s.compact.fit.emptied = true
	s.compact.sweep() // what the process before left
}

func (s *Store) start() {
	s.wg.Go(s.tail.run)
	s.wg.Go(s.heads.run)
	s.wg.Go(s.compact.run)
	s.wg.Go(s.others.run)
	s.wg.Go(s.health.run)
	s.wg.Go(func() { s.state.runAging(s.o.WindowAge, s.stop) })
	if s.state.bounded() {
		s.wg.Go(func() { s.state.runEvictor(s.stop) })
	}
	go s.commits.run() // ends the tail, which Close waits for
}

// Close refuses new commits, finishes those already queued, ends all watchers with
// ErrClosed, and closes the log.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		giveUp := time.AfterFunc(closeGrace, s.cancel)
		defer giveUp.Stop()
		s.commits.close()
		<-s.tail.done
		s.state.close()
		close(s.stop)
		s.cancel()
		s.wg.Wait()
		s.closeErr = s.log.Close()
	})
	return s.closeErr
}

// Source returns the log for those who read it as it is at one moment. Its Close does nothing: the Store
// closes the log.
func (s *Store) Source() changelog.Source { return source{s.log} }

type source struct{ changelog.Log }

func (source) Close() error { return nil }

// Room is Log.Room: what is free where the database is.
func (s *Store) Room() (free, size int64) { return s.log.Room() }

// Condition is Log.Condition: what is known to be wrong without asking the database.
func (s *Store) Condition() error { return s.log.Condition() }

// Moved is CheckMoved for the log of the Store.
func (s *Store) Moved(ctx context.Context) error { return changelog.CheckMoved(ctx, s.log) }
