// Package memory bounds the memory of the process and gives unused memory back. It owns the
// settings of the Go runtime's collector, so it is for programs that are a server, such as
// plinth serve. A program that merely has a server inside, such as a test, decides about its
// memory itself. The package must not know the server.
package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// By itself the Go runtime gives memory back over many minutes. The collector runs when the
// process has allocated as much again, which an idle process does not, and freed memory is returned
// bit by bit. So this package runs the collector after a burst.

const (
	// startup is how long a server needs after its start to make all that it keeps. A third of the
	// heap is of no more use then.
	startup = 2 * time.Second
	// interval is between two looks at the runtime's figures, which cost microseconds.
	interval = 5 * time.Second
	// pause is the least time between two collections, of more than pauseBytes longer by as much, so that they
	// cost about a fiftieth of one processor's time. What one has taken cannot be measured: the process works meanwhile.
	pause      = 20 * time.Second
	pauseBytes = 300 << 20
	// afterwards is when memory is given back once more after load: what a server keeps for a minute or two,
	// such as recent events, is of no more use then.
	afterwards = 150 * time.Second
	// idleBytes and idleCPU are what a process allocates and uses in an interval at most while
	// it has little to do. A hundred nodes that heartbeat cause about half of it.
	idleBytes = 20 << 20
	idleCPU   = interval / 8
	// slack is how many bytes are not worth a collection.
	slack = 32 << 20
)

// usage is what the runtime says of itself.
type usage struct {
	held       uint64        // bytes that Go has from the system and has not returned
	free       uint64        // bytes of them that the last collection has found to be unused
	allocated  uint64        // bytes, since the start of the process
	cpu        time.Duration // likewise; 0 where that is not known
	goroutines uint64
}

// keeper decides when to give memory back.
type keeper struct {
	base  usage     // after memory was given back last, so what was really needed
	last  time.Time // when that was
	then  usage     // at the last look
	busy  bool      // there was load since memory was given back
	again time.Time // once more then, because there was load; zero: no
}

// due tells whether to give memory back now: when the process has little to do and it is
// likely that much is unused. How much, only a collection shows.
func (k *keeper) due(now time.Time, u usage) bool {
	idle := u.allocated-k.then.allocated <= idleBytes && u.cpu-k.then.cpu <= idleCPU
	k.then = u
	k.busy = k.busy || !idle
	if !idle || now.Sub(k.last) < k.pause() {
		return false
	}
	if !k.again.IsZero() && !now.Before(k.again) {
		return true
	}
	return k.busy || // what was needed under load, parts of the program too, may not be needed now
		u.held > k.base.held+k.base.held/2+slack || // grown, by what may be garbage
		u.free > u.held/4+slack ||
		u.goroutines < k.base.goroutines/2 && u.held > 2*slack // watches have ended
}

// gaveBack takes in what is used after memory has been given back.
func (k *keeper) gaveBack(now time.Time, u usage) {
	k.again = time.Time{}
	if k.busy {
		k.again = now.Add(afterwards)
	}
	k.base, k.last, k.then, k.busy = u, now, u, false
}

// pause is the least time from one collection to the next.
func (k *keeper) pause() time.Duration {
	return max(pause, time.Duration(float64(pause)*float64(k.base.held)/pauseBytes))
}

// Keep gives memory back to the system shortly after the start and then after each burst of
// load, within 30 seconds of its end, and once more when what was kept for a while is not needed any more,
// until stop is called. It costs a garbage collection each time, and never happens while the process allocates much.
func Keep() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { keep(done) })
	return func() {
		close(done)
		running.Wait()
	}
}

func keep(done <-chan struct{}) {
	// What is used at the start does not count, because there may be load already.
	var k keeper
	wait := time.NewTimer(startup)
	defer wait.Stop()
	for started := false; ; started = true {
		select {
		case <-wait.C:
		case <-done:
			return
		}
		wait.Reset(interval)
		if !started {
			giveBack()
			k.then = read()
		} else if k.due(time.Now(), read()) {
			giveBack()
			k.gaveBack(time.Now(), read())
		}
	}
}

// giveBack returns all that is not in use. It collects twice, because what lies in a
// sync.Pool, as the buffers of watches and responses do, survives once.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
	unmapProgram()
}

func read() usage {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/sched/goroutines:goroutines"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return usage{held: value(0) - value(1), free: value(2), allocated: value(3), goroutines: value(4), cpu: cpuTime()}
}
