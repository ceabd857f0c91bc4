package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/servertest"
)

// rowsThen are the rows of the ConfigMaps of a namespace at a moment, from a position on.
func (f *pastFixture) rowsThen(at, position string) (page rowsPage) {
	f.Helper()
	a := f.get("rows/configmaps?" + url.Values{"ns": {"default"}, "at": {at}, "continue": {position}}.Encode())
	f.wants(a, 200)
	f.must(json.Unmarshal([]byte(a.body), &page))
	return page
}

// TestPastListPages: a list of the past comes page by page, each larger than what the history gives at once, and is what
// was there, whatever has changed since.
func TestPastListPages(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		f := startPast(t, servertest.Options{DSN: d.Fresh(t)})
		f.page.rowsAtOnce = 120
		at := f.of("", configMaps, "default")
		var want []string
		last := ""
		for i := range 250 {
			name := fmt.Sprintf("map-%03d", i)
			last = f.create(at, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {k: v}}", name)).GetResourceVersion()
			want = append(want, name)
		}
		f.must(at.Delete(context.Background(), "map-000", metav1.DeleteOptions{}))
		f.must(at.Delete(context.Background(), "map-130", metav1.DeleteOptions{}))
		f.set(at, "map-140", "w", "data", "k")
		f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: map-2000}}")
		var got []string
		var pages []int
		for position := ""; ; {
			page := f.rowsThen(last, position)
			for _, r := range page.Rows {
				if got = append(got, r.Name); r.Cells[1].(float64) > float64(parsed(t, last)) || r.Created == 0 {
					t.Errorf("%+v", r)
				}
			}
			pages = append(pages, len(page.Rows))
			if position = page.Continue; position == "" {
				break
			}
		}
		if !slices.Equal(pages, []int{120, 120, 10}) || !slices.Equal(got, want) {
			t.Errorf("pages of %v: %q", pages, got)
		}
	})
}

func parsed(t *testing.T, text string) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPastListMoment: all pages are of the moment of the first, which is another one when it is asked for again as "10ms".
func TestPastListMoment(t *testing.T) {
	f := startPast(t)
	f.page.rowsAtOnce = 2
	at := f.of("", configMaps, "default")
	create := func(name string) {
		f.create(at, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}", name))
	}
	for _, name := range []string{"a", "b", "c"} {
		create(name)
	}
	var page rowsPage
	f.eventually(func() bool {
		page = f.rowsThen("10ms", "")
		return page.Continue != ""
	})
	create("z")
	f.eventually(func() bool {
		next := f.rowsThen("10ms", "")
		return len(f.rowsThen("10ms", next.Continue).Rows) == 2
	})
	if rest := f.rowsThen("10ms", page.Continue); len(rest.Rows) != 1 || rest.Rows[0].Name != "c" || rest.Continue != "" {
		t.Errorf("the rest: %+v", rest)
	}
}

// TestPastListBad: what no list has given does not continue one.
func TestPastListBad(t *testing.T) {
	f := startPast(t)
	f.createNotes()
	for _, position := range []string{"x", "x@", "@5", "x@now", "x@~2", "x@never"} {
		f.wants(f.get("rows/configmaps?at=5&continue="+url.QueryEscape(position)), 400, "does not continue a list")
	}
	f.wants(f.get("rows/configmaps?at=5&continue=x@5"), 400, "continue key is not valid")
}

// TestPastListInBrowser: the script puts the pages together, and sorts over all of them.
func TestPastListInBrowser(t *testing.T) {
	f := startPast(t)
	f.page.rowsAtOnce = 7
	at := f.of("", configMaps, "default")
	last := ""
	for i := range 30 {
		last = f.create(at, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: map-%02d}}", i)).GetResourceVersion()
	}
	f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}")
	s := httptest.NewServer(f.page)
	t.Cleanup(s.Close)
	b := tabAt(t, s.URL+"/x/", s.URL+"/x/")
	b.open("kinds/configmaps?ns=default&at=" + last)
	b.sees("30 objects")
	b.wait(`document.querySelector("#list tbody tr").innerText.includes("map-00")`)
	for range 2 { // the largest come first when it is pressed again
		eval[int](b, `[...document.querySelectorAll("#list th button")].find((b) => b.innerText.startsWith("Revision")).click() ?? 1`)
	}
	b.wait(`document.querySelector("#list tbody tr").innerText.includes("map-29")`)
	b.wait(`document.querySelector("#list tbody tr:last-child").innerText.includes("map-00")`)
	b.sound()
}
