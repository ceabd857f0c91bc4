package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// Flags of several benchmarks, as in shared_flags.go.

func dsnsFlag(dsns *[]string, help string) Flag { return dsnFlagOf(repeated(dsns, nil), help) }

func outFlag(dir *string, help string) Flag {
	return Flag{Name: "out", Set: text(dir, "bench-out"), Help: help}
}

// chartsHelp is that of benchmarks that draw charts.
const chartsHelp = "`directory` that charts and figures are written to; it decides which disk SQLite is measured on"

func quickFlag(quick *bool, help string) Flag {
	return Flag{Name: "quick", Set: boolean(quick, false), Help: help}
}

// quickHelp is that of benchmarks that judge their figures.
const quickHelp = "take seconds instead of minutes, to see that everything works; figures are not judged"

func againstFlag(against *[]string, help string) Flag {
	return Flag{Name: "against", Set: repeated(against, nil), Help: help}
}

func pidFlag(pids *[]string, help string) Flag {
	return Flag{Name: "pid", Set: repeated(pids, nil), Help: help}
}

// benchProcesses reads the values of --pid, NAME=PID, of which names are allowed.
func benchProcesses(values, names []string) (map[string][]int, error) {
	pids := map[string][]int{}
	for _, given := range values {
		name, number, _ := strings.Cut(given, "=")
		pid, err := strconv.Atoi(number)
		if err != nil || pid <= 0 {
			return nil, usagef("--pid: %q: write NAME=PID, such as etcd=4711", given)
		}
		if !slices.Contains(names, name) {
			return nil, usagef("--pid: nothing is called %q; there are %s", name, strings.Join(names, ", "))
		}
		if err := measure.CheckProcess(pid); err != nil {
			return nil, usagef("--pid: %s: %v", given, err)
		}
		pids[name] = append(pids[name], pid)
	}
	return pids, nil
}

func certFlag(file *string, help string) Flag {
	return Flag{Name: "cert", Set: text(file, ""), Help: help}
}

func keyFlag(file *string, help string) Flag {
	return Flag{Name: "key", Set: text(file, ""), Help: help}
}

func caFlag(file *string, help string) Flag {
	return Flag{Name: "cacert", Set: text(file, ""), Help: help}
}

func objectsFlag(set setting, help string) Flag { return Flag{Name: "objects", Set: set, Help: help} }

func nodesFlag(set setting, help string) Flag { return Flag{Name: "nodes", Set: set, Help: help} }

func churnFlag(d *time.Duration, help string) Flag {
	return Flag{Name: "churn", Set: period(d, 10*time.Second), Help: help}
}

func churnRateFlag(rate *int, help string) Flag {
	return Flag{Name: "churn-rate", Set: number(rate, 1000), Help: help}
}

// onlyFlag chooses steps.
func onlyFlag(only *[]string, help string, steps []string) Flag {
	return Flag{Name: "only", Set: list(only, nil), Complete: values(steps...), Help: help + strings.Join(steps, ", ")}
}

// checkComparison checks what all comparisons have, of which steps are the values of --only.
func checkComparison(o *measure.ComparisonOptions, steps []string) error {
	if o.Churn < time.Second {
		return usagef("--churn: write at least 1s")
	}
	if o.ChurnRate < 0 {
		return usagef("--churn-rate: write 0 or more")
	}
	for _, name := range o.Only {
		if !slices.Contains(steps, name) {
			return usagef("--only: %q: write some of %s", name, strings.Join(steps, ", "))
		}
	}
	return nil
}

// announceComparison says what is going to be measured, servers of the Kubernetes API on what is compared among it, and
// where results go.
func announceComparison(o *measure.ComparisonOptions, servers ...measure.Other) string {
	var names []string
	for _, dsn := range o.DSNs {
		names = append(names, "plinth on "+dialects.Scheme(dsn))
	}
	for _, other := range o.Others {
		names = append(names, other.Name)
	}
	for _, server := range servers {
		names = append(names, "a kube-apiserver on "+server.Name)
	}
	return fmt.Sprintf("Measuring %s. Charts and figures will be in %s.\n", strings.Join(names, ", "), o.Dir)
}

// benchOthers reads the values of a flag, NAME=ADDRESS, into others, and adds the names to those that are taken. form
// says what is to be written; valid may be nil.
func benchOthers(others *[]measure.Other, flag string, values []string, valid func(address string) bool, form string, names ...string) ([]string, error) {
	for _, given := range values {
		name, at, _ := strings.Cut(given, "=")
		switch {
		case name == "" || at == "" || valid != nil && !valid(at):
			return nil, usagef("--%s: %q: write %s", flag, given, form)
		case slices.Contains(names, name):
			return nil, usagef("--%s: the name %q comes twice", flag, name)
		}
		names = append(names, name)
		*others = append(*others, measure.Other{Name: name, At: at})
	}
	return names, nil
}

// addDatabases adds what plinths on databases are called to the names of what is measured beside them, which are of
// servers or of endpoints.
func addDatabases(names, dsns []string, what string) ([]string, error) {
	for _, dsn := range dsns {
		name := dialects.Scheme(dsn)
		if slices.Contains(names, name) {
			return nil, usagef("%q is the name of two %s; write another one in --against, or one --dsn for each kind of database", name, what)
		}
		names = append(names, name)
	}
	return names, nil
}
