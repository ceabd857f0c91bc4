package server

import "github.com/plinth-io/plinth/sqlstore"

// LeastMemory is the least that Config.Memory may be: a server without objects takes two thirds of it.
const LeastMemory = 128 << 20

// besidesState is what a server takes beside objects, recent changes and indexes.
const besidesState = 80 << 20

// boundTo bounds what a store holds, so that a process keeps within memory; 0: there is no bound. A half of
// what there is beside the process itself is for objects. The rest is for what requests need, and for garbage
// that the collector has not found yet.
func boundTo(memory int64, o sqlstore.Options) sqlstore.Options {
	if memory == 0 {
		return o
	}
	o.StateBytes = int((memory - besidesState) / 2)
	o.WindowBytes = int(min(32<<20, memory/16))
	o.IndexBytes = int(min(64<<20, memory/16))
	return o
}
