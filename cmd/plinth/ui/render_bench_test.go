package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/plinth-io/plinth/server/servertest"
)

// painted tells when a page was first painted, and what that waited for, in milliseconds since the browser set out for it.
const painted = `(() => {
	const [page] = performance.getEntriesByType("navigation"), sheet = performance.getEntriesByType("resource").find((r) => r.name.endsWith(".css"));
	const paint = performance.getEntriesByType("paint").find((p) => p.name === "first-contentful-paint");
	return [page.responseStart, page.responseEnd, sheet?.responseEnd ?? 0, page.domInteractive, paint?.startTime ?? 0];
})()`

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
	times := map[string][5][]float64{}
	for b.Loop() {
		for range 20 {
			for _, p := range pages {
				p.open(p.address)
				p.wait(painted + `[4] > 0`)
				all := times[p.name]
				for i, t := range eval[[]float64](p.tab, painted) {
					all[i] = append(all[i], t)
				}
				times[p.name] = all
			}
		}
	}
	for _, p := range pages {
		for i, what := range []string{"first-byte", "last-byte", "css", "dom", "paint"} {
			all := times[p.name][i]
			slices.Sort(all)
			b.ReportMetric(all[len(all)/2], "ms-"+p.name+"-"+what)
		}
	}
}
