package etcdbench

import "github.com/plinth-io/plinth/bench/beside"

var (
	createTargets = []beside.Target{{Own: "sqlite", To: "etcd", Bound: beside.AtLeast(1.5)}, {Own: "postgres mysql", To: "kine", Bound: beside.AtLeast(5)}}
	pageTargets   = []beside.Target{{To: "etcd", Bound: beside.AtMost(1)}, {To: "kine", Bound: beside.AtMost(0.1)}}
	delayTargets  = []beside.Target{{To: "etcd", Bound: beside.AtMost(1)}}
	objectTargets = []beside.Target{{Own: "sqlite", To: "etcd", Bound: beside.AtLeast(1)}, {Own: "postgres", To: "kine", Bound: beside.AtLeast(3)}}
	memoryTargets = []beside.Target{{To: "etcd", Bound: beside.AtMost(0.5)}}
	lossTargets   = []beside.Target{{Bound: beside.AtMost(0)}}
)
