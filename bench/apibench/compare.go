package apibench

import (
	"context"
	"errors"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// concurrent is the number of requests that run at once, where nothing else is said.
const concurrent = 64

// roundPatience is how long a round may take beside its churn.
const roundPatience = 15 * time.Minute

// op is one operation of a load.
type op func(ctx context.Context, worker int) error

// compare loads all servers in turn, rounds times.
func (r *run) compare(ctx context.Context, rounds int, warm bool, load func(context.Context, *server) ([]figures.Sample, error), rows ...*figures.Row) error {
	turns := measure.Rounds{Report: r.report, Progress: &r.progress, Count: rounds, Warm: warm, Patience: roundPatience + r.Churn, Plain: plain}
	return measure.Compare(ctx, turns, r.servers, load, rows...)
}

func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// rates compares operations a second, and the servers' CPU time for each.
func (r *run) rates(ctx context.Context, what string, workers int, prepare func(*server) op) error {
	return r.loads(ctx, &figures.Row{What: what, Unit: "/s"}, workers, measure.RateOf, prepare)
}

// times compares how long operations take, one at a time, and the servers' CPU time for each.
func (r *run) times(ctx context.Context, what string, prepare func(*server) op) error {
	return r.loads(ctx, &figures.Row{What: what, Unit: "ms", Less: true}, 1, measure.MeanOf, prepare)
}

func (r *run) loads(ctx context.Context, row *figures.Row, workers int, count func(measure.Load) figures.Sample, prepare func(*server) op) error {
	ops := map[*server]op{}
	for _, s := range r.servers {
		ops[s] = prepare(s)
	}
	return r.compare(ctx, r.scale.rounds, true, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		l, cpu, err := s.loaded(func() (measure.Load, error) { return measure.ClosedLoop(ctx, workers, r.scale.round, ops[s]) })
		return []figures.Sample{count(l), cpu}, err
	}, row, cpuOf(row.What))
}

func cpuOf(what string) *figures.Row {
	return &figures.Row{What: what + ": CPU of the server", Unit: "ms/req", Less: true}
}

// loaded returns a load, and the sample of the server's CPU time for each operation.
func (s *server) loaded(load func() (measure.Load, error)) (l measure.Load, cpu figures.Sample, err error) {
	before, known := measure.Spend(s.pids)
	if l, err = load(); err != nil {
		return l, cpu, err
	}
	after, still := measure.Spend(s.pids)
	spent := after.Since(before)
	return l, figures.Sample{Value: figures.Millis(spent.CPU) / float64(max(l.Ops, 1)), None: !known || !still}, nil
}
