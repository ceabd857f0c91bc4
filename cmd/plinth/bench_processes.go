package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/bench/measure"
)

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
