// Package etcdbench measures the etcd endpoint of plinth beside any others: etcd itself, or a shim.
//
// It starts a process of plinth for each database, connects to the endpoints named beside it, and
// sends all of them what a kube-apiserver sends: with etcd's own client, and by the client's
// package kubernetes, which is what kube-apiserver uses. Rounds are short and the endpoints take
// turns, so that a noisy machine disturbs all alike; a ratio is the median of the ratios of rounds
// that are neighbours.
//
// Watches are checked, not only timed: each write has a number, and every watch must bring each
// that was acknowledged, once and in order.
//
// All keys are below a prefix of the run, and are deleted at its end. What /proc tells of a process
// is left out where there is no /proc, and for endpoints whose process is not named.
package etcdbench
