package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
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
