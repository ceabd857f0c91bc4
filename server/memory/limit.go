package memory

import (
	"errors"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// share of the container's memory is for Go. The rest is for SQLite's caches, the stacks of
// threads, and what the kernel counts as the container's.
const share = 0.9

// Limit makes the garbage collector keep the process below nine tenths of the memory that
// its container may use, by cgroups of version 1 or 2, and returns that bound in bytes. It
// returns 0, and changes nothing, if there is no such limit or GOMEMLIMIT is set, which the
// Go runtime obeys by itself.
func Limit() (int64, error) { return limit(memlimit.FromCgroup) }

// LimitTo is Limit for a process that is to keep within bytes, whatever its container may use.
func LimitTo(bytes int64) { debug.SetMemoryLimit(int64(share * float64(bytes))) }

// InForce returns the limit that the Go runtime obeys; 0: none.
func InForce() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 0
}

func limit(container memlimit.Provider) (int64, error) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return 0, nil
	}
	bytes, err := memlimit.ApplyRatio(container, share)()
	switch {
	case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
		return 0, nil
	case err != nil:
		return 0, err
	case bytes > math.MaxInt64:
		return 0, nil
	}
	debug.SetMemoryLimit(int64(bytes))
	return int64(bytes), nil
}
