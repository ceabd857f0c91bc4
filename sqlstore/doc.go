// Package sqlstore keeps keys and values in one append-only SQL table, the log,
// and serves reads from memory. It does so for Kubernetes objects (package object), and for the
// raw keys of an etcd endpoint (package server/etcd).
//
// # The log
//
// A row is one change of one key. Its id is the revision: the resourceVersion that
// clients see, one sequence for all resources. A row is never updated. What
// a key holds is its newest row; a row with deleted set is a tombstone, which carries
// the last state of an object that is gone. The interface Log is what a SQL dialect
// implements; all SQL is there.
//
// # What holds
//
//  1. Revision order is commit order. A writer takes the log's one write lock before
//     revisions are drawn and holds it to commit: a reader that has seen revision n has
//     seen all below n. A missing number means nothing.
//  2. Every change carries an expectation: the revision it replaces, or absence. It is
//     checked under the write lock. A change whose expectation fails gets its own
//     error; its neighbours in the batch are not touched.
//  3. Acknowledged means durable at the dialect's setting, and visible to every Get,
//     list and watch of this Store that starts afterwards, and to every one on another
//     replica that calls Sync first.
//     A change that may wait for company (Change.MayWait) is acknowledged later, not earlier.
//  4. A COMMIT that failed leaves the outcome unknown: Commit returns ErrUnknown, never
//     retries, and the tail reads what is really there.
//  5. A Watcher gets every change of its range after its start, once, in revision
//     order, or an error. A slow one reads from the log; memory is bounded by the
//     window, never by the slowest watcher.
//  6. A View is the exact state at one revision, however long it is read, or an error.
//  7. The floor is the compacted revision. Reads of the past below it and watches that
//     start below it get ErrCompacted. At the floor itself both work.
//  8. Revisions never go back, also after a restore (Log.Raise), and also when the database is set back
//     while it is served (setback.go): the first statement that meets it fails, nothing is written, and
//     the Store goes on above all that it has served, names what is gone, and ends what began before
//     with ErrCompacted. What a replica has not read it cannot miss: if all that is lost is known to
//     others only, it goes on until one of these has raised the log.
//
// # Keys and values
//
// Both are bytes; Format says what they mean. Order is byte order. The state, snapshots, window
// and wake-ups are kept apart for each resource, which is what Format calls a prefix that keys
// have in common.
//
// # Indexes
//
// A reader who looks for few entries names what their bytes have (Predicate, whose attributes are the
// Format's to read), and View.Select finds them by an index: the entries of a resource in order of their terms
// for one attribute, and then of their keys. It is an ordered map, copied with the state in constant time, so
// that a View finds by it what it would find by a scan, however old it is. The reader checks what it gets: an
// index may give more than was asked for, and never less. The tail keeps indexes; readers who miss one build
// it of the copy that they read, and hand it over with the changes since then (indexes.go). An index goes
// when nobody has had use for it for ten minutes, or when all take more than Options.IndexBytes.
//
// A Watcher of few entries names predicates too (WatchWhere). A change then wakes it only if the entry had one
// of the terms of the first predicate before or has one after: who watches for a term must see that an entry has
// lost it. What such a Watcher does not look at counts as delivered, as do changes of other keys.
//
// # Raw keys
//
// A log is either of objects or of raw keys (Kind). Objects are written one by one, by
// Commit. Raw keys are written by Do, in transactions that read and write any number of them
// under the write lock; all rows of one have one revision (SubBits), become visible at once and
// come to a Watcher in one Poll. Each has a version and maybe a lease. All keys are in memory, and
// as many of their values as Options.CacheBytes allows (cache.go). History stays until CutTo. What objects and raw
// keys do each in their own way, a face does (batch.go), which the parts that both share call.
//
// # Memory
//
// All keys and revisions are in memory, and all values of objects unless Options.StateBytes bounds them: then those
// of the least recently used resources leave memory (evict.go), and readers are given them from the log (away.go).
// A View of such entries may fail: with ErrUnavailable, and with ErrCompacted if an entry was replaced and its old row
// compacted while the View was read.
//
// # The past
//
// Compaction deletes what is below the floor, or by the rules of a changelog.Retention moves it to a second
// table, past, which nothing reads that serves the present. Past and History read both tables. What is
// known of the past is exact: a key's versions have no holes, since older ones go with a version that is
// lost; and for each resource the table kept has the revision from which on its state is known. The
// compactor trims what has expired, fits what is there to other rules (past.go), and deletes what would expire
// first if there is too much of it (pastbound.go). Forget removes the old versions of one key.
//
// # Rewinding
//
// A Pin holds a state, whose history is not compacted by this process, and Rewind (rewind.go) brings
// that state back by ordinary changes.
//
// # Encryption at rest
//
// A Transformer (transform.go) changes objects before their commit joins a batch, and the values
// of rows that come from the log, so that the state holds them plain. What it cannot read becomes
// an unreadable Entry: it has a revision and no Value, is left out of scans, can be deleted, and
// is tried again when it is read. The stored form of an entry that changes nothing is renewed by
// Refresh.
//
// # Who runs
//
// Each Store has these goroutines, started by Open and ended by Close: the committer
// (commit.go) owns the batch and the write connection; the tail (tail.go) is the only
// writer of state and window, but for the evictor (evict.go), which takes values out of a bounded state, and
// readers who bring them back; the head reader (sync.go) asks the database for its head
// on behalf of all who wait in Sync; the compactor (compact.go) moves the floor; one waits
// in Log.Follow; and one (health.go) logs what Log.Condition says. Watchers have none.
// Callers never hold a lock while SQL runs.
//
// Get, Current, Keep, Revision, Floor, Healthy and Stats neither wait nor run SQL; only Get of an
// unreadable entry may wait for a key, and Get of one whose value has left memory for the log. Wait
// and a Watcher in the window run none. At and its View run SQL when they read the past,
// Values when one is not in memory, Sync when the database is shared, Poll when the Watcher is behind the window.
package sqlstore
