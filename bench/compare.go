package bench

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// op is one operation of a load.
type op func(ctx context.Context, worker int) error

// side is one half of a comparison, round by round.
type side struct {
	rates   []float64 // operations a second
	cpus    []float64 // microseconds of the server's CPU time for each operation
	samples []time.Duration
}

// sides are plinth and what it is compared with.
type sides struct{ plinth, echo side }

// compare loads plinth and the handler in turn.
func (g *rig) compare(ctx context.Context, workers int, plinth, echo op) (*sides, error) {
	return g.compareWith(ctx, g.echo, workers, plinth, echo)
}

// compareWith loads plinth and another process in turn, or plinth with two operations.
func (g *rig) compareWith(ctx context.Context, other *process, workers int, plinth, echo op) (*sides, error) {
	var s sides
	// The first round warms both up and does not count.
	for _, o := range []op{plinth, echo} {
		if _, err := measure.ClosedLoop(ctx, workers, g.scale.round/3, o); err != nil {
			return nil, err
		}
	}
	for range g.scale.rounds {
		if err := s.plinth.add(ctx, g.plinth, workers, g.scale.round, plinth); err != nil {
			return nil, err
		}
		if err := s.echo.add(ctx, other, workers, g.scale.round, echo); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

func (s *side) add(ctx context.Context, p *process, workers int, d time.Duration, o op) error {
	before, err := p.cpu()
	if err != nil {
		return err
	}
	l, err := measure.ClosedLoop(ctx, workers, d, o)
	if err != nil {
		return err
	}
	after, err := p.cpu()
	if err != nil {
		return err
	}
	s.rates = append(s.rates, l.Rate())
	s.cpus = append(s.cpus, float64(after-before)/float64(time.Microsecond)/float64(l.Ops))
	s.samples = append(s.samples, l.Samples...)
	return nil
}

// rates compares operations per second; each operation counts as size units.
func (s *sides) rates(what, floor string, size float64, unit string) Figure {
	return Figure{
		What: what, Value: figures.Median(s.plinth.rates) * size, Unit: unit,
		Against: figures.Median(s.echo.rates) * size, Floor: floor,
		Ratio:   figures.Median(figures.Ratios(s.plinth.rates, s.echo.rates)),
		Latency: figures.LatencyOf(s.plinth.samples),
	}
}

// cpu compares the server's CPU time for each operation.
func (s *sides) cpu(what string) Figure {
	return Figure{
		What: what, Value: figures.Median(s.plinth.cpus), Unit: "µs/req",
		Against: figures.Median(s.echo.cpus), Floor: "echo",
		Ratio: figures.Median(figures.Ratios(s.plinth.cpus, s.echo.cpus)),
	}
}
