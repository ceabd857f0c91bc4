package main

import (
	"testing"
	"time"
)

// TestCompactionDue has samples of a day.
func TestCompactionDue(t *testing.T) {
	c := etcdCompaction{mode: compactPeriodic, retention: "2"}
	must(t, c.parse())
	begin := time.Now()
	var past []sample
	for hour := range int64(10) {
		past = append(past, sample{begin.Add(time.Duration(hour) * time.Hour), 100 * hour})
	}
	rest, through := c.due(past, begin.Add(5*time.Hour))
	if through != 300 || len(rest) != 6 {
		t.Errorf("through %d, %d samples left", through, len(rest))
	}
	if rest, through = c.due(rest, begin.Add(5*time.Hour)); through != 0 || len(rest) != 6 {
		t.Errorf("again: through %d, %d samples left", through, len(rest))
	}
}
