package etcdbench

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// sample is what one endpoint did in one round, for one row.
type sample struct {
	value   float64
	samples []time.Duration
	note    string
	none    bool // this endpoint has no such figure
}

// rateOf returns the sample of a load in operations a second.
func rateOf(l measure.Load) sample { return sample{value: l.Rate(), samples: l.Samples} }

// meanOf returns the sample of a load in milliseconds for each operation.
func meanOf(l measure.Load) sample {
	return sample{value: measure.Millis(l.Took) / float64(l.Ops), samples: l.Samples}
}

// round loads one endpoint for one round and returns a sample for each row.
type round func(ctx context.Context, e *endpoint) ([]sample, error)

// compare loads all endpoints in turn, rounds times, after a round that warms up and does not
// count. An endpoint that fails is left out from then on, and its rows say why.
func (r *run) compare(ctx context.Context, rounds int, warm bool, load round, rows ...*Row) error {
	return r.compareAt(ctx, r.endpoints, rounds, warm, load, rows...)
}

// compareAt is compare for some endpoints.
func (r *run) compareAt(ctx context.Context, endpoints []*endpoint, rounds int, warm bool, load round, rows ...*Row) error {
	r.report.Rows = append(r.report.Rows, rows...)
	failed := map[*endpoint]bool{}
	first := 0
	if warm {
		first = -1
	}
	for i := first; i < rounds; i++ {
		for _, e := range endpoints {
			if failed[e] {
				continue
			}
			r.progress.Say("%s: %s, round %d of %d", e.Name, rows[0].What, max(i, 0)+1, rounds)
			samples, err := r.bounded(ctx, e, load)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				failed[e] = true
				for _, row := range rows {
					row.cell(e.Name).Error = plain(err)
				}
				continue
			}
			if i >= 0 {
				add(rows, e.Name, samples)
			}
		}
	}
	return nil
}

// roundPatience is how long a round may take beside its churn: long enough for a slow endpoint to
// be filled.
const roundPatience = 15 * time.Minute

func (r *run) bounded(ctx context.Context, e *endpoint, load round) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, roundPatience+r.Churn)
	defer cancel()
	return load(ctx, e)
}

// add adds a sample to each row.
func add(rows []*Row, name string, samples []sample) {
	for i, s := range samples {
		if s.none {
			continue
		}
		c := rows[i].cell(name)
		c.rounds = append(c.rounds, s.value)
		c.samples = append(c.samples, s.samples...)
		if s.note != "" {
			c.Note = s.note
		}
	}
}
