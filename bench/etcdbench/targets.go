package etcdbench

import (
	"github.com/plinth-io/plinth/bench/figures"
)

var (
	createTargets = []figures.Target{{Own: "sqlite", To: "etcd", Bound: figures.AtLeast(1.5)}, {Own: "postgres mysql", To: "kine", Bound: figures.AtLeast(5)}}
	pageTargets   = []figures.Target{{To: "etcd", Bound: figures.AtMost(1)}, {To: "kine", Bound: figures.AtMost(0.1)}}
	delayTargets  = []figures.Target{{To: "etcd", Bound: figures.AtMost(1)}}
	objectTargets = []figures.Target{{Own: "sqlite", To: "etcd", Bound: figures.AtLeast(1)}, {Own: "postgres", To: "kine", Bound: figures.AtLeast(3)}}
	memoryTargets = []figures.Target{{To: "etcd", Bound: figures.AtMost(0.5)}}
	lossTargets   = []figures.Target{{Bound: figures.AtMost(0)}}
)
