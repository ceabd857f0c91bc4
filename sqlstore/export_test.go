package sqlstore

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// PingEvery is how often an idle Store asks for the head.
const PingEvery = pingEvery

// WindowLimit is the bound of the window in bytes.
func (s *Store) WindowLimit() int { return s.o.WindowBytes }

// Age has the window age once more.
func (s *Store) Age() { s.state.age() }

// LogOf returns the log of s.
func LogOf(s *Store) changelog.Log { return s.log }

// Queued is the number of changes that wait for a transaction.
func (s *Store) Queued() int {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	return len(s.commits.queue)
}

// Latest is when a change must begin that may wait.
var Latest = latest

// Due tells, a while after changes came that may wait so long, whether a batch of most changes begins, and
// if not, when.
func Due(most int, waits []time.Duration, passed time.Duration) (wait time.Duration, due bool) {
	began := time.Unix(1e9, 0)
	c := committer{maxCount: most}
	for _, w := range waits {
		c.queue = append(c.queue, &pending{by: latest(context.Background(), w, began)})
	}
	return c.due(began.Add(passed))
}

// Committing says that a batch is in its transaction or being applied.
func (s *Store) Committing() bool { return s.pipe.inFlight() }

// Probe asks the database whether it takes writes, of an idle Store.
func (s *Store) Probe() error {
	_, err := s.log.Append(s.ctx, nil)
	return err
}

// Cached is what the values of raw keys in memory take.
func (s *Store) Cached() int {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.bytes
}

// CacheRing is the number of entries that the cache holds on to.
func (s *Store) CacheRing() int {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.ring.len()
}

// BoundAuthors sets how many authors s adds. It is to be called before the first commit.
func (s *Store) BoundAuthors(most int) { s.authors.most = most }

// AgeAuthors makes the authors that s has added older. No commit may be under way.
func (s *Store) AgeAuthors(by time.Duration) { s.authors.added.since = s.authors.added.since.Add(-by) }

// DropIndexes drops all indexes that nobody has had use for after a moment.
func (s *Store) DropIndexes(now time.Time) { s.state.dropIndexes(now) }

// Reload reads the state anew, as a replica does that has missed too much.
func (s *Store) Reload(ctx context.Context) error { return s.loader.load(ctx) }

// IsSame says that two readers were given the same.
var IsSame = isSame

// EvictNow takes values out of memory, as the evictor does, until there are few enough.
func (s *Store) EvictNow() {
	for s.state.evictSome() {
	}
}

// SizeClasses are sizes of values, each with what Usage tells of one that is away.
func SizeClasses(sizes ...int) (told []int) {
	for _, size := range sizes {
		told = append(told, int(aways[sizeClass(size)].size.Load()))
	}
	return told
}

const (
	PollBytes = pollBytes
	LogPolls  = logPolls
)

// ShareOf is shareOf.
func ShareOf(objects int64) int64 { return shareOf(objects) }
