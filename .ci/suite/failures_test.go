package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestClip puts a report of the race detector, or what a test says, at each place of a long log.
func TestClip(t *testing.T) {
	for _, report := range []string{"WARNING: DATA RACE", "    jobs_test.go:57: written once"} {
		t.Run(strings.TrimSpace(report), func(t *testing.T) { clipsAround(t, report) })
	}
}

func clipsAround(t *testing.T, report string) {
	for _, n := range []int{4, 9, 10, 11, 40} {
		for at := range 200 {
			var lines []string
			for i := range 200 {
				lines = append(lines, fmt.Sprint("line ", i))
			}
			lines[at] = report
			got := clip(lines, n)
			if len(got) > n {
				t.Errorf("%d lines, of %d that there may be", len(got), n)
			}
			if n >= 10 && !slices.Contains(got, lines[at]) {
				t.Errorf("the report in line %d is left out of %d lines", at, n)
			}
			if got[0] != lines[0] || got[len(got)-1] != lines[199] {
				t.Errorf("from %q to %q", got[0], got[len(got)-1])
			}
			left := 0
			for _, line := range got {
				var some int
				if _, err := fmt.Sscanf(strings.TrimSpace(line), "… %d lines left out", &some); err == nil {
					left += some - 1
				}
			}
			if len(got)+left != 200 {
				t.Errorf("%d lines, and %d more than their places are left out", len(got), left)
			}
		}
	}
}
