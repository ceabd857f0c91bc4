package server

import (
	"github.com/plinth-io/plinth/server/memory"
	"github.com/plinth-io/plinth/sqlstore"
)

// LeastMemory is the least that Config.Memory may be: a server without objects takes two thirds of it.
const LeastMemory = 128 << 20

// baseMemory is what a server takes without objects, recent changes and indexes.
const baseMemory = 80 << 20

func stateBytes(memory int64) int64 { return (memory - baseMemory) / 2 }

// fitState lets the state of objects take less where more than planned is needed beside it: for forms of them that
// readers asked for, or for requests.
func (s *Server) fitState() {
	memory.FitIn(s.ctx, stateBytes(s.config.Memory), func() int64 { return int64(s.store.Stats().StateBytes) }, func(bytes int64) { s.store.SetRoom(int(bytes)) })
}

// boundTo bounds what a store holds, so that a process keeps within memory; 0: there is no bound. A half of
// what there is beside the process itself is for objects. The rest is for what requests need, and for garbage
// that the collector has not found yet.
func boundTo(memory int64, o sqlstore.Options) sqlstore.Options {
	if memory == 0 {
		return o
	}
	o.StateBytes = int(stateBytes(memory))
	o.WindowBytes = int(min(32<<20, memory/16))
	o.IndexBytes = int(min(64<<20, memory/16))
	return o
}

// slowBounds is what one user's requests may hold while they wait for their clients, in number and in bytes; all
// users together may hold four times as much. Of the connections they leave others most.
func slowBounds(memory int64, connections int) (calls int, bytes int64) {
	const mostCalls, mostBytes = 256, 16 << 20
	calls, bytes = mostCalls, mostBytes
	if memory > 0 {
		calls = min(calls, int(memory>>21))
		bytes = max(4<<20, min(bytes, memory/32))
	}
	if connections > 0 {
		calls = max(8, min(calls, connections/16))
	}
	return calls, bytes
}
