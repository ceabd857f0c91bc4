package torture

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects"
)

// Report is what a run has done and found.
type Report struct {
	Dialect  string
	Replicas int
	Seed     uint64
	Took     time.Duration
	Rounds   int
	Calls    map[string]int // answered, by kind
	Failed   int            // calls without success that changed nothing
	Unknown  int            // writes whose outcome nobody told
	Faults   map[string]int
	Streams  int
	Expired  int // streams and lists that got 410
	Events   int
	Rows     int           // of the log, that everything was compared with
	Compared int           // replicas whose memory was compared
	Outage   time.Duration // longest time in which no call succeeded
	Broken   []Broken
	Files    []string
}

func newReport(o *Options) *Report {
	return &Report{Dialect: dialects.Scheme(o.DSN), Replicas: o.Replicas, Seed: o.Seed, Calls: map[string]int{}, Faults: map[string]int{}}
}

func (h *History) events() (n int) {
	for _, w := range h.Watches {
		for _, s := range w.Streams {
			n += len(s.Events)
		}
	}
	return n
}

func (r *Report) add(h *History, broken []Broken) {
	r.Rounds++
	r.Rows += len(h.Log)
	r.Compared += r.Replicas
	r.Events += h.events()
	r.Broken = append(r.Broken, broken...)
	for _, c := range h.Calls {
		switch {
		case c.OK():
			r.Calls[c.Kind]++
		case c.Unknown():
			r.Unknown++
		default:
			r.Failed++
		}
		if c.Status == 410 {
			r.Expired++
		}
	}
	for _, f := range h.Faults {
		r.Faults[f.Name]++
	}
	for _, w := range h.Watches {
		r.Streams += len(w.Streams)
		for _, s := range w.Streams {
			if s.Status == 410 {
				r.Expired++
			}
		}
	}
	r.Outage = max(r.Outage, h.outage())
}

// outage returns the longest time in which no call succeeded.
func (h *History) outage() (longest time.Duration) {
	calls := slices.DeleteFunc(slices.Clone(h.Calls), func(c *Call) bool { return !c.OK() })
	slices.SortFunc(calls, func(a, b *Call) int { return cmp.Compare(a.End, b.End) })
	for i := 1; i < len(calls); i++ {
		longest = max(longest, calls[i].End-calls[i-1].End)
	}
	return longest
}

// Write writes the report as text.
func (r *Report) Write(w io.Writer) {
	calls := 0
	for _, n := range r.Calls {
		calls += n
	}
	fmt.Fprintf(w, "%s, %d replicas, seed %d: %v in %d rounds\n", r.Dialect, r.Replicas, r.Seed, r.Took.Round(time.Second), r.Rounds)
	fmt.Fprintf(w, "  calls answered   %d: %s\n", calls, counts(r.Calls))
	fmt.Fprintf(w, "  calls refused    %d; %d writes with unknown outcome\n", r.Failed, r.Unknown)
	fmt.Fprintf(w, "  watches          %d streams, %d events; %d requests were told that their revision is too old\n", r.Streams, r.Events, r.Expired)
	fmt.Fprintf(w, "  faults           %s\n", counts(r.Faults))
	fmt.Fprintf(w, "  longest outage   %v without a call that succeeded\n", r.Outage.Round(time.Millisecond))
	fmt.Fprintf(w, "  compared with    %d changes in the log; the memory of replicas with the database, %d times\n", r.Rows, r.Compared)
	switch {
	case r.Rounds == 0:
		fmt.Fprintf(w, "  nothing was checked: no round has come to its end\n")
		return
	case len(r.Broken) == 0:
		fmt.Fprintf(w, "  every guarantee held\n")
		return
	}
	for _, b := range r.Broken[:min(len(r.Broken), 10)] {
		fmt.Fprintf(w, "BROKEN: %s\n  %.1000s\n", b.Guarantee, b.Text)
	}
	fmt.Fprintf(w, "%d faults were found. Files:\n  %s\n", len(r.Broken), strings.Join(r.Files, "\n  "))
}

func counts(m map[string]int) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		texts = append(texts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(texts, ", ")
}
