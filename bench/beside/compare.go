package beside

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// Sample is what one endpoint did in one round, for one row.
type Sample struct {
	Value   float64
	Samples []time.Duration
	Note    string
	None    bool // this endpoint has no such figure
}

// RateOf returns the sample of a load in operations a second.
func RateOf(l measure.Load) Sample { return Sample{Value: l.Rate(), Samples: l.Samples} }

// MeanOf returns the sample of a load in milliseconds for each operation.
func MeanOf(l measure.Load) Sample {
	return Sample{Value: measure.Millis(l.Took) / float64(l.Ops), Samples: l.Samples}
}

// Rounds is how endpoints take turns.
type Rounds struct {
	Report   *Report
	Progress *measure.Progress
	Count    int
	Warm     bool               // a round before the others warms up and does not count
	Patience time.Duration      // with one round of an endpoint
	Plain    func(error) string // says what an error is
}

// Compare loads all endpoints in turn, round by round. A load returns a sample for each row. An endpoint
// that fails is left out from then on, and its rows say why.
func Compare[E interface{ EndpointName() string }](ctx context.Context, r Rounds, endpoints []E, load func(context.Context, E) ([]Sample, error), rows ...*Row) error {
	r.Report.Rows = append(r.Report.Rows, rows...)
	failed := map[string]bool{}
	first := 0
	if r.Warm {
		first = -1
	}
	for i := first; i < r.Count; i++ {
		for _, e := range endpoints {
			name := e.EndpointName()
			if failed[name] {
				continue
			}
			r.Progress.Say("%s: %s, round %d of %d", name, rows[0].What, max(i, 0)+1, r.Count)
			samples, err := bounded(ctx, r.Patience, e, load)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				failed[name] = true
				for _, row := range rows {
					row.Cell(name).Error = r.Plain(err)
				}
				continue
			}
			if i >= 0 {
				add(rows, name, samples)
			}
		}
	}
	return nil
}

func bounded[E any](ctx context.Context, patience time.Duration, e E, load func(context.Context, E) ([]Sample, error)) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return load(ctx, e)
}

// add adds a sample to each row.
func add(rows []*Row, name string, samples []Sample) {
	for i, s := range samples {
		if !s.None {
			rows[i].Cell(name).Add(s)
		}
	}
}
