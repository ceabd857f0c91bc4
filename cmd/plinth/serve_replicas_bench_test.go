package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// BenchmarkReplicas measures the writes of clients at one plinth, and of the same clients at two, half of
// them at each, and how long an event that was written at one takes to a watch at the other. The servers should sync their
// writes: go run ./dialects/logtest/withservers -durable -- go test -run - -bench Replicas ./cmd/plinth
func BenchmarkReplicas(b *testing.B) {
	for _, d := range logtest.Dialects {
		if d.Servers == 1 {
			continue
		}
		b.Run(d.Name, func(b *testing.B) {
			first, second := serveReplicas(b, d.Fresh(b), "--controllers=none")
			at := []typedcorev1.ConfigMapInterface{clientFrom(first.config(b)), clientFrom(second.config(b))}
			for range b.N {
				writesPerSecond(b, at, 16) // warm
				for _, clients := range []int{16, 64} {
					one := writesPerSecond(b, at[:1], clients)
					two := writesPerSecond(b, at, clients)
					b.ReportMetric(one, fmt.Sprintf("one-of-%d-writes/s", clients))
					b.ReportMetric(two, fmt.Sprintf("two-of-%d-writes/s", clients))
				}
				times := eventTimes(b, at)
				b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "event-p50-ms")
				b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "event-p99-ms")
			}
		})
	}
}

func writesPerSecond(b *testing.B, at []typedcorev1.ConfigMapInterface, clients int) float64 {
	const lasts = 5 * time.Second
	ctx, cancel := context.WithTimeout(b.Context(), lasts)
	defer cancel()
	var running sync.WaitGroup
	counts := make([]int, clients)
	for i, w := range newLoad(clients).writers {
		_ = at[0].Delete(b.Context(), w.name, metav1.DeleteOptions{})
		running.Go(func() {
			for ctx.Err() == nil && w.write(b.Context(), at[i%len(at)]) {
				counts[i]++
			}
			if w.err != nil {
				b.Error(w.err)
			}
		})
	}
	running.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / lasts.Seconds()
}

// eventTimes returns, sorted, how long events take from the call that writes them to a watch elsewhere.
func eventTimes(b *testing.B, at []typedcorev1.ConfigMapInterface) (times []time.Duration) {
	w, err := at[1].Watch(b.Context(), metav1.ListOptions{FieldSelector: "metadata.name=event", ResourceVersion: ""})
	must(b, err)
	defer w.Stop()
	_ = at[0].Delete(b.Context(), "event", metav1.DeleteOptions{})
	written := (&writer{name: "event"})
	for range 500 {
		begun := time.Now()
		if !written.write(b.Context(), at[0]) {
			b.Fatal(written.err)
		}
		for event := range w.ResultChan() {
			if event.Object.(metav1.Object).GetResourceVersion() == written.acked.ResourceVersion {
				break
			}
		}
		times = append(times, time.Since(begun))
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(times)
	return times
}
