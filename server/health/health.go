// Package health answers /livez, /readyz and /healthz as kube-apiserver does, from a
// list of named checks.
package health

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Check is one thing that must be well.
type Check struct {
	Name string
	// Run returns nil, or what is wrong. It must not block.
	Run func() error
	// Why is what everybody may know of an error of Run. Nil withholds it, as upstream
	// does: errors tell of addresses and users.
	Why func(error) string
}

// Ping is always well: the process answers.
var Ping = Check{Name: "ping", Run: func() error { return nil }}

// Probe is one of the endpoints, with its checks under /<name>/<check>.
type Probe struct {
	name   string // "readyz"
	checks []Check
	logf   func(format string, args ...any)
}

// New returns the probe of that name. logf (may be nil) gets what is wrong in full;
// the answer is public and names the checks that failed, with what they let be known.
func New(name string, logf func(format string, args ...any), checks ...Check) *Probe {
	if logf == nil {
		logf = func(string, ...any) {}
	}
	return &Probe{name: name, checks: checks, logf: logf}
}

// ServeHTTP answers for all checks; the parameters verbose and exclude=NAME (repeatable)
// are upstream's (apiserver/pkg/server/healthz).
func (p *Probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	out, failed := p.run(query["exclude"])
	if failed != "" {
		p.logf("%s check failed: %s", p.name, failed)
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

// run returns a line for each check, and what is wrong with those that failed.
func (p *Probe) run(exclude []string) (out, failed string) {
	var lines, wrong strings.Builder
	for _, c := range p.checks {
		if slices.Contains(exclude, c.Name) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		if err := c.Run(); err != nil {
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.Name, c.why(err))
			fmt.Fprintf(&wrong, "[%s: %v]", c.Name, err)
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
	}
	lines.WriteString(p.unmatched(exclude))
	return lines.String(), wrong.String()
}

func (c Check) why(err error) string {
	if c.Why == nil {
		return "reason withheld"
	}
	return c.Why(err)
}

// unmatched warns of excluded names that no check has.
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
		if c.Name == name {
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

// ServeHTTP answers for this check alone, and says what is wrong.
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
