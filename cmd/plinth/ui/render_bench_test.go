package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/plinth-io/plinth/server/servertest"
)

// painted tells when a page was first painted, and what that waited for, in milliseconds since the browser set out for it.
const painted = `(() => {
	const [page] = performance.getEntriesByType("navigation"), sheet = performance.getEntriesByType("resource").find((r) => r.name.endsWith(".css"));
	const paint = performance.getEntriesByType("paint").find((p) => p.name === "first-contentful-paint");
	return [page.responseStart, page.responseEnd, sheet?.responseEnd ?? 0, page.domInteractive, paint?.startTime ?? 0];
})()`

// busy is how long the processor has worked for a page, in milliseconds: the same on a machine that has much else to do.
func busy(b *tab) float64 {
	b.Helper()
	return play(b, func(ctx context.Context, t *chromedp.Target) (float64, error) {
		r, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return 0, err
		}
		for _, m := range r.Metrics {
			if m.Name == "TaskDuration" {
				return m.Value * 1000, nil
			}
		}
		return 0, fmt.Errorf("there is no TaskDuration")
	})
}

// BenchmarkFirstPaint opens pages in a browser that has their files, in turn with a page of one line: how long that takes is
// the browser's part on this machine.
func BenchmarkFirstPaint(b *testing.B) {
	line := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>line</title><main><h1>One line</h1></main>`)
	}))
	b.Cleanup(line.Close)
	srv := servertest.Start(b)
	fill(b, srv.Config, 100)
	base, address := local(b, srv.Config)
	page, bare := tabAt(b, base, address), tabAt(b, line.URL, "") // in one tab, each would wait for a new process
	pages := []struct {
		name, address string
		*tab
	}{
		{"line", "/", bare}, {"list", "kinds/configmaps?ns=default", page},
		{"object", "objects/configmaps/default/object-00001", page}, {"timeline", "objects/configmaps/default/object-00001/timeline", page},
	}
	for _, b := range []*tab{page, bare} {
		play(b, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
			return err
		}))
	}
	times := map[string][6][]float64{}
	for b.Loop() {
		for range 20 {
			for _, p := range pages {
				p.open(p.address)
				p.wait(`document.readyState === "complete" && ` + painted + `[4] > 0`)
				all := times[p.name]
				for i, t := range append(eval[[]float64](p.tab, painted), busy(p.tab)) {
					all[i] = append(all[i], t)
				}
				times[p.name] = all
			}
		}
	}
	for _, p := range pages {
		for i, what := range []string{"first-byte", "last-byte", "css", "dom", "paint", "busy"} {
			all := times[p.name][i]
			slices.Sort(all)
			b.ReportMetric(all[len(all)/2], "ms-"+p.name+"-"+what)
		}
	}
}
