// Package scrubs looks for damage in the database of a running server, at intervals. It owns the metrics
// about that and what the log says; what damage is, package sqlstore/scrub knows.
package scrubs

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

// Scrubber looks at one database.
type Scrubber struct {
	Source      changelog.Source
	Transformer sqlstore.Transformer         // nil: encrypted values are not decoded
	Pace        func(context.Context) func() // of one look
	// Memory is what the server has in memory; see scrub.Options.
	Memory func(ctx context.Context, revision int64) (sqlstore.Digest, error)
	Logger *slog.Logger

	success, failure, problems, rows prometheus.Gauge
	digest                           *prometheus.GaugeVec

	broke string // where the last look ended because the database went away; "": it did not
}

// mostTold is how many problems of one look are logged.
const mostTold = 20

// New returns s with its metrics.
func New(s Scrubber) *Scrubber {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	s.success = gauge("plinth_scrub_success_timestamp_seconds", "When this process last looked at the whole database for damage, in seconds since 1970; 0: not yet.")
	s.failure = gauge("plinth_scrub_failure_timestamp_seconds", "When this process last could not look at the whole database, in seconds since 1970; 0: not yet.")
	s.problems = gauge("plinth_scrub_problems", "Pieces of damage found by this process when it last looked.")
	s.rows = gauge("plinth_scrub_rows", "Rows that this process last looked at.")
	s.digest = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "plinth_scrub_digest", Help: "1, with the digest of all objects in the database at a revision, when this process last looked."}, []string{"revision", "digest"})
	s.digest.WithLabelValues("0", "").Set(0)
	return &s
}

// Collectors are the metrics.
func (s *Scrubber) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.success, s.failure, s.problems, s.rows, s.digest}
}

// Last returns when this process last searched the whole database and how much damage it found, and when
// it last failed to search; zero times if it has not.
func (s *Scrubber) Last() (success time.Time, problems int, failure time.Time) {
	return metrics.TimeOf(s.success), int(metrics.ValueOf(s.problems)), metrics.TimeOf(s.failure)
}

// Look looks at the whole database, and logs what it finds. An error means that the database is away. If it goes
// away twice at the same place, what is stored there makes it: that is damage.
func (s *Scrubber) Look(ctx context.Context) error {
	begun, told := time.Now(), 0
	o := scrub.Options{Transformer: s.Transformer, Memory: s.Memory, Found: func(p scrub.Problem) {
		if told++; told <= mostTold {
			s.Logger.Error("the database is damaged", "problem", p.String())
		}
	}}
	o.Pace = s.Pace(ctx)
	report, err := scrub.Log(ctx, s.Source, o)
	if err != nil {
		if ctx.Err() == nil {
			s.fail(err, report.Problems)
		}
		return err
	}
	s.broke = ""
	s.success.SetToCurrentTime()
	s.problems.Set(float64(report.Problems))
	s.rows.Set(float64(report.Rows))
	s.digest.Reset()
	if d := report.Digest; d.Revision > 0 {
		s.digest.WithLabelValues(strconv.FormatInt(d.Revision, 10), d.Text()).Set(1)
	}
	if report.Problems > 0 {
		s.Logger.Error("the database is damaged: plinth verify names all problems", "problems", report.Problems, "rows", report.Rows)
		return nil
	}
	s.Logger.Info("no damage in the database", "objects", report.Objects, "rows", report.Rows, "took", time.Since(begun))
	return nil
}

// fail notes that the database could not be searched to its end, and what was found until then.
func (s *Scrubber) fail(err error, problems int64) {
	s.failure.SetToCurrentTime()
	var at *scrub.InterruptedError
	again := errors.As(err, &at) && at.Place == s.broke && at.Place != scrub.Start
	if s.broke = ""; at != nil {
		s.broke = at.Place
	}
	if again {
		problems++
		s.Logger.Error("the database is damaged", "problem", at.Place+": the database goes away whenever that is read: "+at.Err.Error())
	}
	if problems > 0 { // a search that ends early takes none back
		s.problems.Set(max(metrics.ValueOf(s.problems), float64(problems)))
	}
	s.Logger.Warn("the database could not be searched for damage; it is tried again", "err", err)
}
