// Package health answers /livez, /readyz and /healthz as kube-apiserver does, from a list of
// named checks. It owns the form of the answers and the log of checks that begin to fail. It
// must not know what is checked: the server hands it the checks.
package health

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Check is one condition of a healthy server.
type Check struct {
	Name string
	// Aliases are other names by which the check is asked for and excluded.
	Aliases []string
	// Run returns nil, or what is wrong. It must not block.
	Run func() error
	// Why returns the part of an error of Run that is public. Nil withholds the error, as
	// upstream does: errors have addresses and users in them.
	Why func(error) string
	// Expected says that the check fails during each start or stop, which needs no warning.
	Expected bool
}

// Ping never fails: the process answers.
var Ping = Check{Name: "ping", Run: func() error { return nil }}

// Probe is one of the endpoints, with its checks under /<name>/<check>.
type Probe struct {
	name    string // "readyz"
	checks  []Check
	results *Results
	logger  *slog.Logger
	warn    func() []string // nil: nothing

	mu     sync.Mutex
	states map[string]*state // of the checks that have run, by name; guarded by mu
}

// state is what was logged of a check.
type state struct {
	failed time.Time // since when the check fails; zero if it passes
	told   bool      // the failure was logged
	toldAt time.Time // when a failure was logged last
}

// logPause is the least time between two records that a check fails.
const logPause = 10 * time.Second

// New returns the probe of that name. results, which may be nil, counts what each check says; log,
// which may be nil, gets the whole error when a check
// begins to fail, and a record when the check passes again. The answer is public: it names the
// failed checks with the public part of their errors.
func New(name string, results *Results, logger *slog.Logger, checks ...Check) *Probe {
	if results == nil {
		results = NewResults()
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Probe{name: name, checks: checks, results: results, logger: logger, states: map[string]*state{}}
}

// Warn makes the verbose answer warn of what does not fail the probe. It must be called before the first
// request.
func (p *Probe) Warn(of func() []string) { p.warn = of }

// ServeHTTP answers for all checks; the parameters verbose and exclude=NAME (repeatable)
// are upstream's (apiserver/pkg/server/healthz).
func (p *Probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	out, failed := p.run(query["exclude"])
	if failed {
		http.Error(w, out+p.name+" check failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !query.Has("verbose") {
		fmt.Fprint(w, "ok")
		return
	}
	fmt.Fprintf(w, "%s%s check passed\n", out, p.name)
}

// run runs the checks and returns a line for each.
func (p *Probe) run(exclude []string) (out string, failed bool) {
	var lines strings.Builder
	for _, c := range p.checks {
		if slices.ContainsFunc(exclude, c.isCalled) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		err := c.Run()
		p.results.observe(c.Name, p.name, err)
		p.tell(c, err)
		if err != nil {
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.Name, c.why(err))
			failed = true
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
	}
	lines.WriteString(p.unmatched(exclude))
	if p.warn != nil {
		for _, line := range p.warn() {
			fmt.Fprintf(&lines, "warn: %s\n", line)
		}
	}
	return lines.String(), failed
}

// tell logs a result that differs from the last one: clients may ask any number of times.
func (p *Probe) tell(c Check, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[c.Name]
	if s == nil {
		s = &state{}
		p.states[c.Name] = s
	}
	switch {
	case err == nil && s.told:
		p.logger.Log(context.Background(), c.level(slog.LevelInfo), "health check passes again", "probe", p.name, "check", c.Name, "after", time.Since(s.failed))
		*s = state{toldAt: s.toldAt}
	case err == nil:
		s.failed = time.Time{}
	default:
		if s.failed.IsZero() {
			s.failed = time.Now()
		}
		if !s.told && time.Since(s.toldAt) >= logPause {
			s.told, s.toldAt = true, time.Now()
			p.logger.Log(context.Background(), c.level(slog.LevelWarn), "health check fails", "probe", p.name, "check", c.Name, "err", err)
		}
	}
}

func (c Check) isCalled(name string) bool { return c.Name == name || slices.Contains(c.Aliases, name) }

func (c Check) level(l slog.Level) slog.Level {
	if c.Expected {
		return slog.LevelDebug
	}
	return l
}

func (c Check) why(err error) string {
	if c.Why == nil {
		return "reason withheld"
	}
	return c.Why(err)
}

// unmatched returns a warning about excluded names that no check has.
func (p *Probe) unmatched(exclude []string) string {
	var names []string
	for _, name := range exclude {
		if p.Find(name) == nil {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("warn: some health checks cannot be excluded: no matches for %s\n",
		strings.Join(slices.Compact(names), ","))
}

// Name returns the probe's name, which is also its path.
func (p *Probe) Name() string { return p.name }

// Find returns the handler of one check, nil if there is none of that name.
func (p *Probe) Find(name string) http.Handler {
	for _, c := range p.checks {
		if c.isCalled(name) {
			return c
		}
	}
	return nil
}

// Names lists the checks, for the index of paths.
func (p *Probe) Names() []string {
	names := make([]string, len(p.checks))
	for i, c := range p.checks {
		names[i] = c.Name
	}
	return names
}

// Aliases lists the other names of checks.
func (p *Probe) Aliases() (names []string) {
	for _, c := range p.checks {
		names = append(names, c.Aliases...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ServeHTTP answers for this check alone.
func (c Check) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := c.Run(); err != nil {
		reason := err.Error()
		if c.Why != nil {
			reason = c.Why(err)
		}
		http.Error(w, "internal server error: "+reason, http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok")
}
