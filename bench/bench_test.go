package bench

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	var samples []time.Duration
	for i := 100; i > 0; i-- {
		samples = append(samples, time.Duration(i)*time.Millisecond)
	}
	got := latencyOf(samples)
	if diff := cmp.Diff(&Latency{P50: 50, P90: 90, P99: 99, Max: 100}, got); diff != "" {
		t.Error(diff)
	}
	if one := latencyOf([]time.Duration{time.Second}); one.P50 != 1000 || one.P99 != 1000 {
		t.Errorf("of one sample: %+v", one)
	}
	if latencyOf(nil) != nil {
		t.Error("latency without samples")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		before := slices.Clone(c.values)
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, not %v", c.values, c.want, got)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("median reordered its argument")
		}
	}
	if got := ratios([]float64{1, 6}, []float64{2, 3}); !slices.Equal(got, []float64{0.5, 2}) {
		t.Errorf("ratios are %v", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.1234: "0.123", 3.14159: "3.14", 55.55: "55.5", 123.4: "123",
		1234: "1,234", 1234567.8: "1,234,568", -1234567: "-1,234,567", 1e6: "1,000,000",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, not %q", v, got, want)
		}
	}
}

func TestTargets(t *testing.T) {
	var d Database
	d.add(Figure{What: "a", Value: 50, Against: 100, Floor: "floor", Ratio: 0.5, Target: atLeast(0.6)})
	d.add(Figure{What: "b", Value: 50, Unit: "MiB", Target: atMost(120)})
	d.add(Figure{What: "c", Value: 1, Unit: "events", Target: atMost(0)})
	d.add(Figure{What: "d", Value: 0, Unit: "events", Target: atMost(0)})
	var met []bool
	for _, f := range d.Figures {
		met = append(met, f.Target.Met)
		if (f.headroom() >= 1) != f.Target.Met || math.IsInf(f.headroom(), 0) || math.IsNaN(f.headroom()) {
			t.Errorf("%s: headroom %v, met %v", f.What, f.headroom(), f.Target.Met)
		}
	}
	if !slices.Equal(met, []bool{false, true, false, true}) {
		t.Errorf("met: %v", met)
	}
	r := Report{Databases: []*Database{{Name: "x", Figures: d.Figures}}}
	if diff := cmp.Diff([]string{"x: a", "x: c"}, r.Missed()); diff != "" {
		t.Error(diff)
	}
}

func TestTable(t *testing.T) {
	d := &Database{Name: "sqlite", Version: "3", Settings: "durable"}
	d.add(Figure{What: "store", Value: 5000, Unit: "rows/s", Against: 10000, Floor: "floor", Ratio: 0.5, Target: atLeast(0.6), Latency: &Latency{P50: 0.5, P99: 2}})
	d.add(Figure{What: "memory", Value: 90, Unit: "MiB", Target: atMost(120), Note: "so far"})
	var b bytes.Buffer
	r := Report{Plinth: "v1", Go: "go1", Platform: "linux/amd64", CPUs: 2, Databases: []*Database{d}}
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"  store   5,000 rows/s  0.500 / 2 ms  10,000 rows/s floor  0.50   ≥ 0.6      MISSED",
		"  memory  90 MiB                                                  ≤ 120 MiB  met (so far)",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("missing %q in\n%s", line, b.String())
		}
	}
}

func TestClosedLoop(t *testing.T) {
	var running, most atomic.Int64
	l, err := closedLoop(context.Background(), 3, 30*time.Millisecond, func(context.Context, int) error {
		most.Store(max(most.Load(), running.Add(1)))
		time.Sleep(time.Millisecond)
		running.Add(-1)
		return nil
	})
	if err != nil || l.ops != len(l.samples) || l.ops < 3 || l.took < 30*time.Millisecond || most.Load() > 3 {
		t.Errorf("%d operations in %v, at most %d at once, %v", l.ops, l.took, most.Load(), err)
	}
	broken := errors.New("broken")
	_, err = closedLoop(context.Background(), 4, time.Hour, func(ctx context.Context, worker int) error {
		if worker == 2 {
			return broken
		}
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("error of a worker: %v", err)
	}
}

func TestEach(t *testing.T) {
	var seen [10]atomic.Int64
	if _, err := each(context.Background(), 4, len(seen), func(_ context.Context, i int) error {
		seen[i].Add(1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range seen {
		if seen[i].Load() != 1 {
			t.Errorf("%d was done %d times", i, seen[i].Load())
		}
	}
}

func TestUsage(t *testing.T) {
	before, _, err := usage()
	if err != nil {
		t.Fatal(err)
	}
	ballast := bytes.Repeat([]byte("x"), 32<<20) // written, so resident
	for end := before + 20*time.Millisecond; ; {
		cpu, rss, err := usage()
		if err != nil || rss < int64(len(ballast)) {
			t.Fatalf("%d bytes resident, %v", rss, err)
		}
		if cpu > end {
			break
		}
	}
}

func TestFields(t *testing.T) {
	if n := len(valueOf(123456)); n != 1024 {
		t.Errorf("a value has %d bytes", n)
	}
	object := configMap("a", 7)
	setField(object, "n", "000000000042")
	if got := intField(object, "n"); got != 42 {
		t.Errorf("n is %d", got)
	}
	for object, want := range map[string]int64{`{"sent":"0012"}`: 12, `{}`: 0, `{"sent":"12`: 0, `{"sent":"x"}`: 0} {
		if got := intField([]byte(object), "sent"); got != want {
			t.Errorf("%s: %d", object, got)
		}
	}
}

func TestWatcherTakes(t *testing.T) {
	w := &watcher{seen: make([]bool, 3), done: make(chan struct{})}
	event := func(revision, n string) []byte {
		return []byte(`{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"` + revision + `"},"data":{"n":"` + n + `","sent":"1000"}}}`)
	}
	now := time.Unix(0, 3_001_000)
	w.take(event("10", "0"), now)
	w.take(event("10", "0"), now) // twice
	w.take(event("9", "1"), now)  // out of order
	w.take(event("12", "2"), now)
	if w.events != 2 || w.again != 2 || w.samples[0] != 3*time.Millisecond {
		t.Errorf("%d events, %d again, %v", w.events, w.again, w.samples)
	}
	w.take(event("13", "1"), now)
	select {
	case <-w.done:
	default:
		t.Error("all came, and it does not say so")
	}
}

// TestCharts draws what is odd: nothing measured, one point, zeros.
func TestCharts(t *testing.T) {
	zero := &Database{Name: "a<b>&\"", Figures: []Figure{{What: "x", Unit: "rows/s", Latency: &Latency{}, Writers: 1}}}
	zero.add(Figure{What: "<y>", Unit: "events", Target: atMost(0)})
	zero.add(Figure{What: "z", Target: atLeast(1)})
	r := &Report{Databases: []*Database{zero, {Name: "empty"}}}
	for name, chart := range map[string]string{
		"throughput": throughputChart(r), "targets": targetsChart(r), "latency": latencyChart(r),
	} {
		checkXML(t, name, []byte(chart))
	}
}
