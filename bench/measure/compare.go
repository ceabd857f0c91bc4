package measure

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
)

// RateOf returns the sample of a load in operations a second.
func RateOf(l Load) figures.Sample { return figures.Sample{Value: l.Rate(), Samples: l.Samples} }

// MeanOf returns the sample of a load in milliseconds for each operation.
func MeanOf(l Load) figures.Sample {
	return figures.Sample{Value: figures.Millis(l.Took) / float64(l.Ops), Samples: l.Samples}
}

// Rounds is how endpoints take turns.
type Rounds struct {
	Report   *figures.Comparison
	Progress *Progress
	Count    int
	Warm     bool               // a round before the others warms up and does not count
	Patience time.Duration      // with one round of an endpoint
	Plain    func(error) string // says what an error is
}

// Compare loads all endpoints in turn, round by round. A load returns a sample for each row. An endpoint
// that fails is left out from then on, and its rows say why.
func Compare[E interface{ EndpointName() string }](ctx context.Context, r Rounds, endpoints []E, load func(context.Context, E) ([]figures.Sample, error), rows ...*figures.Row) error {
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

func bounded[E any](ctx context.Context, patience time.Duration, e E, load func(context.Context, E) ([]figures.Sample, error)) ([]figures.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return load(ctx, e)
}

// add adds a sample to each row.
func add(rows []*figures.Row, name string, samples []figures.Sample) {
	for i, s := range samples {
		if !s.None {
			rows[i].Cell(name).Add(s)
		}
	}
}
