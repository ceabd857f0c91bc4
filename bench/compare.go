package bench

import (
	"context"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// side is one half of a comparison, round by round.
type side struct {
	rates figures.Series // operations a second
	cpus  figures.Series // microseconds of the server's CPU time for each operation
}

// sides are plinth and what it is compared with.
type sides struct{ plinth, other side }

// compare loads plinth and the handler in turn.
func (g *rig) compare(ctx context.Context, workers int, plinth, echo apiload.Operation) (*sides, error) {
	return g.compareWith(ctx, g.echo, workers, plinth, echo)
}

// compareWith loads plinth and another process in turn, or plinth with two operations.
func (g *rig) compareWith(ctx context.Context, other *process, workers int, plinth, against apiload.Operation) (*sides, error) {
	var s sides
	// The first round warms both up and does not count.
	for _, o := range []apiload.Operation{plinth, against} {
		if _, err := measure.ClosedLoop(ctx, workers, g.scale.round/3, o); err != nil {
			return nil, err
		}
	}
	for range g.scale.rounds {
		if err := s.plinth.add(ctx, g.plinth, workers, g.scale.round, plinth); err != nil {
			return nil, err
		}
		if err := s.other.add(ctx, other, workers, g.scale.round, against); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

func (s *side) add(ctx context.Context, p *process, workers int, d time.Duration, o apiload.Operation) error {
	before, err := p.cpu()
	if err != nil {
		return err
	}
	l, err := measure.ClosedLoop(ctx, workers, d, o)
	if err != nil {
		return err
	}
	after, err := p.cpu()
	s.rates.Add(l.Rate(), l.Samples...)
	s.cpus.Add(float64(after-before) / float64(time.Microsecond) / float64(l.Ops))
	return err
}

// compared is the figure of a series beside that of a floor.
func compared(what string, s, floor *figures.Series, name string) Figure {
	return Figure{What: what, Value: s.Median(), Against: floor.Median(), Floor: name, Ratio: s.Ratio(floor), Latency: s.Latency()}
}

// rates compares operations per second; each operation counts as size units.
func (s *sides) rates(what, floor string, size float64, unit string) Figure {
	f := compared(what, &s.plinth.rates, &s.other.rates, floor)
	f.Value, f.Against, f.Unit = f.Value*size, f.Against*size, unit
	return f
}

// cpu compares the server's CPU time for each operation.
func (s *sides) cpu(what string) Figure {
	f := compared(what, &s.plinth.cpus, &s.other.cpus, "echo")
	f.Unit = "µs/req"
	return f
}
