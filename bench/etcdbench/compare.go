package etcdbench

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// roundPatience is how long a round may take beside its churn: long enough for a slow endpoint to
// be filled.
const roundPatience = 15 * time.Minute

// round loads one endpoint for one round and returns a sample for each row.
type round func(ctx context.Context, e *endpoint) ([]figures.Sample, error)

// compare loads all endpoints in turn, rounds times.
func (r *run) compare(ctx context.Context, rounds int, warm bool, load round, rows ...*figures.Row) error {
	return r.compareAt(ctx, r.endpoints, rounds, warm, load, rows...)
}

// compareAt is compare for some endpoints.
func (r *run) compareAt(ctx context.Context, endpoints []*endpoint, rounds int, warm bool, load round, rows ...*figures.Row) error {
	turns := measure.Rounds{Report: r.report, Progress: &r.progress, Count: rounds, Warm: warm, Patience: roundPatience + r.Churn, Plain: plain}
	return measure.Compare(ctx, turns, endpoints, load, rows...)
}
