package bench

import (
	"bytes"
	"testing"
	"time"
)

func TestGrown(t *testing.T) {
	for _, c := range []struct {
		before, after int64
		want          string
		noted         bool
	}{
		{100 << 20, 115 << 20, "15 MiB", false},
		{100 << 20, 100<<20 + 300<<10, "0.293 MiB", false},
		{100 << 20, 100 << 20, "0 MiB", false},
		{100 << 20, 99 << 20, "0 MiB", true},
	} {
		f := grown("memory", c.before, c.after)
		if f.value() != c.want || (f.Note != "") != c.noted {
			t.Errorf("from %d to %d: %s, note %q", c.before, c.after, f.value(), f.Note)
		}
	}
}

func TestUsage(t *testing.T) {
	before, _, _, err := usage()
	if err != nil {
		t.Fatal(err)
	}
	ballast := bytes.Repeat([]byte("x"), 32<<20) // written, so resident
	for end := before + 20*time.Millisecond; ; {
		cpu, rss, own, err := usage()
		if err != nil || own < int64(len(ballast)) || rss < own {
			t.Fatalf("%d bytes resident, %d of them its own, %v", rss, own, err)
		}
		if cpu > end {
			break
		}
	}
}
