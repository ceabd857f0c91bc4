package memory

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestLimit sets the limit of this process, so that it runs alone.
func TestLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	broken := errors.New("broken")
	fails := func(err error) memlimit.Provider {
		return func() (uint64, error) { return 0, fmt.Errorf("read: %w", err) }
	}
	for name, c := range map[string]struct {
		variable  string
		container memlimit.Provider
		want      int64 // 0: the limit stays as it was
		err       error
	}{
		"a limit":               {"", memlimit.Limit(1000 * mib), 900 * mib, nil},
		"none":                  {"", fails(memlimit.ErrNoLimit), 0, nil},
		"no cgroup":             {"", fails(memlimit.ErrNoCgroup), 0, nil},
		"another system":        {"", fails(memlimit.ErrCgroupsNotSupported), 0, nil},
		"more than can be said": {"", memlimit.Limit(math.MaxUint64), 0, nil},
		"GOMEMLIMIT wins":       {"512MiB", memlimit.Limit(1000 * mib), 0, nil},
		"GOMEMLIMIT off":        {"off", memlimit.Limit(1000 * mib), 0, nil},
		"unreadable":            {"", fails(broken), 0, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", c.variable)
			debug.SetMemoryLimit(before)
			got, err := limit(c.container)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("limit is %d, not %d; error %v", got, c.want, err)
			}
			want := c.want
			if want == 0 {
				want = before
			}
			if set := debug.SetMemoryLimit(-1); set != want {
				t.Errorf("the runtime's limit is %d, not %d", set, want)
			}
		})
	}
}

// TestLimitTo sets the limit of this process, so that it runs alone.
func TestLimitTo(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	debug.SetMemoryLimit(math.MaxInt64)
	if limit := InForce(); limit != 0 {
		t.Errorf("without a limit, %d is in force", limit)
	}
	LimitTo(1000 * mib)
	if limit := InForce(); limit != 900*mib {
		t.Errorf("%d is in force", limit)
	}
}
