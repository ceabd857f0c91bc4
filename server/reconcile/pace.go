package reconcile

import "time"

// firstWords is the shortest pause between two writes that tell of one failure in other words.
const firstWords = time.Second

// InOtherWords tells whether a failure is worth another write because its message has changed.
// The message of some failures changes with every try, as those of connections that have a port
// of their own, and each write costs a row, and an event for every watch. The pause between two
// writes is as long as the failure had lasted at the first of the two, but at most most: so it
// doubles. It is computed from what is stored, and therefore holds for all servers of a database
// together and across restarts.
//
// since is when the failure began, written when the object was last written.
func InOtherWords(since, written, now time.Time, most time.Duration) bool {
	return now.Sub(written) >= min(max(written.Sub(since), firstWords), most)
}
