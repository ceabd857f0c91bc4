// Package alarms watches conditions that somebody should look at before they become faults: a disk that
// fills, compaction that does not keep up, certificates that end. It owns the list of alarms with their
// thresholds, and knows when each began. It must not know where facts come from, nor how an event is made:
// the server hands it both.
package alarms
