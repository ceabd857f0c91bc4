package changelog

// Follower is who follows a Log by Follow: a Store. Only Hint must be there.
type Follower struct {
	// Hint is called whenever another process may have appended: with the newest revision if the log
	// knows it, else with 0.
	Hint func(head int64)
	// Known returns the newest revision that the follower has. What is not above it is no news.
	Known func() int64
	// Told has a token when another process said that it has appended. It is the caller who makes the
	// follower look; the log needs to know because more may come soon.
	Told <-chan struct{}
	// AllTell tells whether all other processes say when they append after a while without: a log that
	// asks the database again and again may do so seldom then.
	AllTell func() bool
	// Polls is called with whether the log asks the database again and again, because that does not
	// say by itself when there is news.
	Polls func(polls bool)
}
