package alarms

import "time"

// Counts are running totals of a store.
type Counts struct {
	Transactions, Changes, HeadReads int64
	TransactionTime, HeadTime        time.Duration
}

func (c Counts) minus(before Counts) Counts {
	return Counts{
		Transactions: c.Transactions - before.Transactions, Changes: c.Changes - before.Changes, HeadReads: c.HeadReads - before.HeadReads,
		TransactionTime: c.TransactionTime - before.TransactionTime, HeadTime: c.HeadTime - before.HeadTime,
	}
}

// Recent is what was counted in the last minute.
type Recent struct {
	Counts
	Over time.Duration // shorter after a start
}

// Transaction returns how long a write transaction took; 0 if there was none.
func (r Recent) Transaction() time.Duration { return mean(r.TransactionTime, r.Transactions) }

// Head returns how long a query for the newest revision took; 0 if there was none.
func (r Recent) Head() time.Duration { return mean(r.HeadTime, r.HeadReads) }

// PerSecond returns a rate.
func (r Recent) PerSecond(n int64) float64 {
	if r.Over <= 0 {
		return 0
	}
	return float64(n) / r.Over.Seconds()
}

func mean(sum time.Duration, n int64) time.Duration {
	if n <= 0 {
		return 0
	}
	return sum / time.Duration(n)
}

// sample is a moment's Counts.
type sample struct {
	at time.Time
	Counts
}

// samples are those of the last minute, oldest first.
type samples []sample

const recently = time.Minute

// add adds a sample and returns what was counted since the oldest.
func (s *samples) add(now time.Time, c Counts) Recent {
	kept := (*s)[:0]
	for i, old := range *s {
		if now.Sub(old.at) <= recently || i == len(*s)-1 {
			kept = append(kept, old)
		}
	}
	*s = append(kept, sample{now, c})
	first := (*s)[0]
	return Recent{Counts: c.minus(first.Counts), Over: now.Sub(first.at)}
}
