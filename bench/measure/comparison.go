package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/dialects"
)

// Concurrent is the number of requests that run at once, where nothing else is said.
const Concurrent = 64

// Connections is the number of connections that a load is spread over. Each stands for one client program.
const Connections = 8

// DialTimeout is how long a server that runs already may take to answer.
const DialTimeout = 10 * time.Second

// Options are those of all benchmarks.
type Options struct {
	DSNs []string // databases to measure plinth on; servers are asked for scratch databases, which are dropped at the end
	// Dir gets the report and the charts. It also holds SQLite's files while they are measured, so it decides which
	// disk that is.
	Dir      string
	Quick    bool      // short rounds and few objects, to see that everything works
	Command  []string  // of the processes that are measured
	Version  string    // plinth's own, for the report
	Progress io.Writer // a terminal that shows what is being done; nil: nothing
}

// ComparisonOptions are those of benchmarks that measure plinth beside other servers.
type ComparisonOptions struct {
	Options
	Others    []Other // servers beside plinth
	TLS       TLS     // for those that are named by URL
	Churn     time.Duration
	ChurnRate int      // writes a second that the churn makes at most; 0: as many as it can
	Only      []string // measurements to make, by the names in Steps; none: all
	// PIDs are the processes of servers, by name; plinth's own are known. The first is the server itself, whose
	// memory is measured. CPU time and writes to disks are those of all, such as the database server's of a shim.
	PIDs map[string][]int
}

// Other is a server that runs already.
type Other struct {
	Name string
	At   string // URL or file of a kubeconfig
}

// TLS are files as etcdctl and kubectl have flags for.
type TLS struct{ Cert, Key, CA string }

// Server is what a comparison knows of each server, plinth's or another.
type Server struct {
	figures.Endpoint
	PIDs []int // of the server itself, and of others that work for it
	Own  *Own  // nil: it was running already
}

// Base returns s, for endpoints that have one.
func (s *Server) Base() *Server { return s }

// Memory is that of the server itself.
func (s *Server) Memory() (sample figures.Sample, spent Spent) {
	spent, known := Spend(s.PIDs[:min(len(s.PIDs), 1)])
	return figures.Sample{Value: figures.MiB(spent.RSS), None: !known}, spent
}

// Endpoint is a server as a benchmark reaches it.
type Endpoint interface {
	Base() *Server
	Clean(context.Context) error // deletes what was written, as far as the server lets it
	Disconnect()
}

// Comparison loads plinth and other servers in turn.
type Comparison[E Endpoint] struct {
	ComparisonOptions
	Dial  func(context.Context, Other) (E, error)
	Start func(ctx context.Context, dsn string) (E, error) // starts plinth and connects to it
	Plain func(error) string                               // says what an error is

	Report    *figures.Comparison
	Endpoints []E      // plinth's come first
	Apart     []E      // those that only some rows are of
	Temporary string   // directory, removed at the end
	Line      Progress // says what is being done
}

// NewComparison returns a comparison that has not begun.
func NewComparison[E Endpoint](o ComparisonOptions) *Comparison[E] {
	c := &Comparison[E]{ComparisonOptions: o, Plain: Plain, Line: Progress{W: o.Progress, Begun: time.Now()}}
	c.Report = &figures.Comparison{Run: figures.NewRun(o.Version, c.Line.Begun, o.Quick)}
	return c
}

// Plain returns what an error says.
func Plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// Run connects, measures, and writes the report and its charts to files whose names begin with name. If measure fails
// half-way or ctx ends, what was measured until then is written, and the report comes with the error.
func (c *Comparison[E]) Run(ctx context.Context, name string, measure func(context.Context) error) (_ *figures.Comparison, err error) {
	if c.Temporary, err = MakeDirs(c.Dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Temporary)) }()
	defer c.Line.Clear()
	if err = c.connect(ctx); err == nil {
		err = measure(ctx)
	}
	err = errors.Join(err, c.disconnect(ctx))
	var measured []figures.Endpoint
	for _, e := range append(c.Endpoints, c.Apart...) {
		measured = append(measured, e.Base().Endpoint)
	}
	c.Report.Finish(measured)
	if ctx.Err() != nil {
		c.Report.Interrupted = true
		err = ErrInterrupted
	}
	if len(c.Report.Rows) == 0 {
		return nil, err
	}
	return c.Report, errors.Join(err, c.Report.Write(c.Options.Dir, name))
}

// connect connects to the others, first, so that a wrong address is told at once, and starts plinth on each database.
func (c *Comparison[E]) connect(ctx context.Context) error {
	for _, other := range c.Others {
		c.Line.Say("%s: connect", other.Name)
		e, err := c.Dial(ctx, other)
		if err != nil {
			return fmt.Errorf("%s: %w", other.Name, err)
		}
		c.Endpoints = append(c.Endpoints, e)
	}
	for i, dsn := range c.DSNs {
		name := dialects.Scheme(dsn)
		c.Line.Say("%s: start", name)
		e, err := c.Start(ctx, dsn)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.Endpoints = slices.Insert(c.Endpoints, i, e)
	}
	return nil
}

// disconnect deletes what the run has written to servers that are not plinth's own, and ends plinth.
func (c *Comparison[E]) disconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	var errs []error
	for _, e := range c.Endpoints {
		s := e.Base()
		if s.Own == nil {
			c.Line.Say("%s: delete what was written", s.Name)
			if err := e.Clean(ctx); err != nil {
				errs = append(errs, fmt.Errorf("%s: delete what was written: %w", s.Name, err))
			}
		}
		e.Disconnect()
		if s.Own != nil {
			errs = append(errs, s.Own.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// Round loads one endpoint for one round and returns a sample for each row.
type Round[E any] func(context.Context, E) ([]figures.Sample, error)

// Compare loads all endpoints in turn, rounds times; if warm, a round before the others does not count.
func (c *Comparison[E]) Compare(ctx context.Context, rounds int, warm bool, load Round[E], rows ...*figures.Row) error {
	return c.CompareAt(ctx, c.Endpoints, rounds, warm, load, rows...)
}

// CompareAt is Compare for some endpoints. An endpoint that fails is left out from then on, and its rows say why.
func (c *Comparison[E]) CompareAt(ctx context.Context, endpoints []E, rounds int, warm bool, load Round[E], rows ...*figures.Row) error {
	c.Report.Rows = append(c.Report.Rows, rows...)
	failed := map[string]bool{}
	first := 0
	if warm {
		first = -1
	}
	for i := first; i < rounds; i++ {
		for _, e := range endpoints {
			name := e.Base().Name
			if failed[name] {
				continue
			}
			c.Line.Say("%s: %s, round %d of %d", name, rows[0].What, max(i, 0)+1, rounds)
			samples, err := c.bounded(ctx, e, load)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if failed[name] = err != nil; failed[name] {
				for _, row := range rows {
					row.Cell(name).Error = c.Plain(err)
				}
			} else if i >= 0 {
				add(rows, name, samples)
			}
		}
	}
	return nil
}

// roundPatience is how long a round may take beside its churn: long enough for a slow endpoint to be filled.
const roundPatience = 15 * time.Minute

func (c *Comparison[E]) bounded(ctx context.Context, e E, load Round[E]) ([]figures.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, roundPatience+c.Churn)
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

// MeasureStarts measures how long plinth takes until it answers, on an empty database. Others run already.
func (c *Comparison[E]) MeasureStarts(ctx context.Context, what string, starts int) error {
	row := &figures.Row{What: what, Unit: "ms", Less: true}
	c.Report.Rows = append(c.Report.Rows, row)
	for i := range starts {
		for _, dsn := range c.DSNs {
			name := dialects.Scheme(dsn)
			c.Line.Say("%s: start, %d of %d", name, i+1, starts)
			e, err := c.Start(ctx, dsn)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			own := e.Base().Own
			row.Cell(name).Add(figures.Sample{Value: figures.Millis(own.Took)})
			e.Disconnect()
			if err := errors.Join(own.Stop(ctx), ctx.Err()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// MeasureChurn lets writers and watches work on one endpoint after the other. begin opens the watches, and completes
// the churn with them and with its store and its footprint.
func (c *Comparison[E]) MeasureChurn(ctx context.Context, size ChurnSize, begin func(context.Context, E, *Churn) error) error {
	next := func() *Churn { return &Churn{ChurnSize: size, For: c.Churn, Rate: c.ChurnRate} }
	return c.Compare(ctx, 1, false, func(ctx context.Context, e E) ([]figures.Sample, error) {
		churn := next()
		if err := begin(ctx, e, churn); err != nil {
			return nil, err
		}
		return churn.Measure(ctx, c.Plain)
	}, next().Rows()...)
}

// RateOf returns the sample of a load in operations a second.
func RateOf(l Load) figures.Sample { return figures.Sample{Value: l.Rate(), Samples: l.Samples} }

// MeanOf returns the sample of a load in milliseconds for each operation.
func MeanOf(l Load) figures.Sample {
	return figures.Sample{Value: figures.Millis(l.Took) / float64(l.Ops), Samples: l.Samples}
}
