package memory

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"
)

const mib = 1 << 20

func TestDue(t *testing.T) {
	begun := time.Now()
	// A process that needs 70 MiB for 200 goroutines has given memory back, and had allocated
	// 1,000 MiB by then.
	base := usage{held: 70 * mib, allocated: 1000 * mib, goroutines: 200, cpu: time.Hour}
	for name, c := range map[string]struct {
		after time.Duration
		now   usage
		want  bool
	}{
		"a burst is over":         {time.Minute, usage{900 * mib, 0, 1001 * mib, time.Hour, 200}, true},
		"in the middle of it":     {time.Minute, usage{900 * mib, 0, 1300 * mib, time.Hour, 5000}, false},
		"many watches catch up":   {time.Minute, usage{900 * mib, 0, 1001 * mib, time.Hour + 2*time.Second, 5000}, false},
		"nothing has happened":    {time.Minute, usage{70 * mib, 0, 1000 * mib, time.Hour, 200}, false},
		"grown as it always does": {time.Minute, usage{137 * mib, 60 * mib, 1010 * mib, time.Hour, 200}, false},
		"just beyond":             {time.Minute, usage{138 * mib, 0, 1010 * mib, time.Hour, 200}, true},
		"known to be free":        {time.Minute, usage{120 * mib, 63 * mib, 1010 * mib, time.Hour, 200}, true},
		"again too soon":          {19 * time.Second, usage{900 * mib, 0, 1001 * mib, time.Hour, 200}, false},
		"soon enough":             {20 * time.Second, usage{900 * mib, 0, 1001 * mib, time.Hour, 200}, true},
		"less than it needed":     {time.Minute, usage{10 * mib, 0, 1001 * mib, time.Hour, 200}, false},
		"watches have ended":      {time.Minute, usage{70 * mib, 0, 1001 * mib, time.Hour, 90}, true},
		"too few to matter":       {time.Minute, usage{60 * mib, 0, 1001 * mib, time.Hour, 90}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var k keeper
			k.gaveBack(begun, base)
			if got := k.due(begun.Add(c.after), c.now); got != c.want {
				t.Errorf("due is %v", got)
			}
		})
	}
}

// TestDueTwice lets a burst pass, look by look: one collection follows, another one when recent events have
// left, and none after that, also if most of the memory turns out to be needed.
func TestDueTwice(t *testing.T) {
	for name, left := range map[string]uint64{"all is freed": 60 * mib, "all is needed": 900 * mib} {
		t.Run(name, func(t *testing.T) {
			var k keeper
			now := time.Now()
			u := usage{held: 60 * mib}
			k.gaveBack(now, u)
			var collected []int
			for look := range 100 {
				now = now.Add(interval)
				u.allocated += mib // by what goes on always
				if look >= 10 && look < 20 {
					u.held += 84 * mib
					u.allocated += 200 * mib
				}
				if k.due(now, u) {
					collected = append(collected, look)
					u.held = left
					k.gaveBack(now, u)
				}
			}
			if want := []int{20, 20 + int(afterwards/interval)}; !slices.Equal(collected, want) {
				t.Errorf("collected at the looks %v, not at %v: the first after the burst, and once more", collected, want)
			}
		})
	}
}

// TestDueAfterLoad wants memory looked at again when load has ended that was there already
// when memory was given back, so that what it needed counted as needed.
func TestDueAfterLoad(t *testing.T) {
	for _, held := range []uint64{400 * mib, 40 * mib} { // of a small heap the program's own pages count
		var k keeper
		now := time.Now()
		u := usage{held: held}
		k.gaveBack(now, u)
		u.cpu += 3 * time.Second
		if now = now.Add(time.Minute); k.due(now, u) {
			t.Errorf("due under load")
		}
		if now = now.Add(interval); !k.due(now, u) {
			t.Errorf("not due with %d MiB held", held/mib)
		}
	}
}

// TestDueSeldom wants collections of much memory to be rare, however often one is due.
func TestDueSeldom(t *testing.T) {
	var k keeper
	begun := time.Now()
	k.gaveBack(begun, usage{held: 750 * mib})
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{49 * time.Second, false}, {50 * time.Second, true}} {
		if got := k.due(begun.Add(c.after), usage{held: 1800 * mib}); got != c.want {
			t.Errorf("due after %v is %v", c.after, got)
		}
	}
}

// TestGiveBack wants the system to get back what a pool keeps.
func TestGiveBack(t *testing.T) {
	var pool sync.Pool
	ballast := bytes.Repeat([]byte("x"), 64*mib)
	before := read()
	pool.Put(&ballast)
	ballast = nil
	giveBack()
	after := read()
	if before.held < 64*mib || after.held > before.held-48*mib {
		t.Errorf("%d MiB held before, %d MiB after", before.held/mib, after.held/mib)
	}
	if after.allocated < 64*mib {
		t.Errorf("%d bytes allocated", after.allocated)
	}
}

func TestKeepStops(t *testing.T) {
	stop := Keep()
	stop() // returns when the goroutine has ended
}
