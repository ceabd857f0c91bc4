// Package changelog is the contract between the engine (package sqlstore) and the SQL dialects: the log, its rows, the
// changes that it is asked for, and the errors that say why it did not do something. Who writes a dialect reads this
// package and implements Log; who uses one asks for the role that it needs. It knows no SQL, no state in memory
// and no watches.
//
// # The log
//
// A row is one change of one key. Its id is the revision, one sequence for all keys. A row is never updated. What a key
// holds is its newest row; a row with Deleted set is a tombstone, which has the last state of an object that is gone. Keys
// and values are bytes, and the order of keys is that of their bytes. What they mean is the engine's to know.
//
// # What every dialect holds
//
//  1. Revision order is commit order. A writer takes the log's one write lock before revisions are drawn and holds it
//     to commit: a reader that has seen revision n has seen all below n. A missing number means nothing.
//  2. Every change carries an expectation: the revision that it replaces, or absence. It is checked under the write lock.
//     A change whose expectation fails does not touch its neighbours in the batch. Appended.Judge is this rule.
//  3. What was committed is durable at the dialect's setting, and every later read sees it, of any process.
//  4. A COMMIT that failed leaves the outcome unknown (ErrUnknown), and is never repeated.
//  5. The floor is the compacted revision. It moves in the transaction that deletes rows. Reads of the past below it get
//     ErrCompacted, judged in the snapshot that they read.
//  6. Revisions never go back, also after a restore (Appender.Raise). A database that is set back while it is served is
//     noticed by its Witness.
//
// # Two kinds
//
// A log has one Kind. Objects are written one by one, by Appender.Append. Raw keys are written by Appender.Transact, in transactions
// that read and write any number of them under the write lock; all rows of one have one revision (SubBits).
//
// # Where to look
//
// log.go has the Log and its roles for writing and reading, compaction.go, filling.go and source.go have the others.
// change.go and rows.go have what goes in and comes out, raw.go what raw keys have besides. retention.go says which old
// versions stay; witness.go, moved.go and key.go have the rules that all dialects call.
package changelog
