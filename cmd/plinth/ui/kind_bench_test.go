package ui

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	clientrest "k8s.io/client-go/rest"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/server/servertest"
)

// scrolled scrolls through the whole list in two hundred steps, one a frame, and returns how long the frames took.
const scrolled = `new Promise((done) => {
	const box = document.querySelector("#list"), frames = [], steps = 200;
	let last = performance.now(), i = 0;
	const step = (now) => {
		frames.push(now - last);
		last = now;
		box.scrollTop = (box.scrollHeight - box.clientHeight) * ++i / steps;
		i < steps ? requestAnimationFrame(step) : done(frames.slice(1));
	};
	requestAnimationFrame(step);
})`

// BenchmarkListScroll opens a list of 50,000 ConfigMaps in Chromium and scrolls through it.
func BenchmarkListScroll(b *testing.B) {
	srv := servertest.Start(b)
	const objects = 50000
	fill(b, srv.Config, objects)
	base, address := local(b, srv.Config)
	tab := tabAt(b, base, address)
	for b.Loop() {
		tab.open("kinds/configmaps?ns=default")
		tab.wait(`document.querySelector("#list")?.getAttribute("aria-busy") === "false"`)
		b.ReportMetric(eval[float64](tab, `performance.now()`)/1000, "s-to-all-rows")
		b.ReportMetric(eval[float64](tab, `performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).filter((r) => !/rows/.test(r.name)).reduce((n, r) => n + r.transferSize, 0)`)/1024, "KiB-page")
		b.ReportMetric(eval[float64](tab, `document.querySelectorAll("*").length`), "elements")
		frames := eval[[]float64](tab, scrolled)
		most, sum, slow := 0.0, 0.0, 0
		for _, f := range frames {
			if most, sum = max(most, f), sum+f; f > 51 { // frames come at multiples of 16.7 ms
				slow++
			}
		}
		b.ReportMetric(float64(slow), "frames-over-50-ms")
		b.ReportMetric(most, "ms-longest-frame")
		b.ReportMetric(sum/float64(len(frames)), "ms-frame")
	}
	tab.sound()
}

// fill makes many ConfigMaps.
func fill(b *testing.B, config *clientrest.Config, n int) {
	b.Helper()
	config = clientrest.CopyConfig(config)
	config.QPS = -1
	client := dynamic.NewForConfigOrDie(config).Resource(configMaps).Namespace("default")
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error {
			_, err := client.Create(ctx, configMap(fmt.Sprintf("object-%05d", i), map[string]any{"a": "b"}), metav1.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}
