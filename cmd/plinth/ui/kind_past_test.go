package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/servertest"
)

// rowsThen are the rows of the ConfigMaps of a namespace at a moment, from a position on.
func (b *workbench) rowsThen(at, position string) (page rowsPage) {
	b.Helper()
	a := b.open("rows/configmaps?" + url.Values{"ns": {"default"}, "at": {at}, "continue": {position}}.Encode()).is(200)
	b.must(json.Unmarshal([]byte(a.html), &page))
	return page
}

// TestPastListPages: a list of the past comes page by page, each larger than what the history gives at once, and is what
// was there, whatever has changed since.
func TestPastListPages(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		b := newWorkbench(t, servertest.Options{DSN: d.Fresh(t)})
		b.ui.rowsAtOnce = 120
		at := b.by("", configMaps, "default")
		var want []string
		last := ""
		for i := range 250 {
			name := fmt.Sprintf("map-%03d", i)
			last = b.create(at, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {k: v}}", name)).GetResourceVersion()
			want = append(want, name)
		}
		b.must(at.Delete(context.Background(), "map-000", metav1.DeleteOptions{}))
		b.must(at.Delete(context.Background(), "map-130", metav1.DeleteOptions{}))
		b.set(at, "map-140", "w", "data", "k")
		b.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: map-2000}}")
		var got []string
		var pages []int
		for position := ""; ; {
			page := b.rowsThen(last, position)
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
	b := newWorkbench(t)
	b.ui.rowsAtOnce = 2
	at := b.by("", configMaps, "default")
	create := func(name string) {
		b.create(at, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}", name))
	}
	for _, name := range []string{"a", "b", "c"} {
		create(name)
	}
	var page rowsPage
	b.eventually(func() bool {
		page = b.rowsThen("10ms", "")
		return page.Continue != ""
	})
	create("z")
	b.eventually(func() bool {
		next := b.rowsThen("10ms", "")
		return len(b.rowsThen("10ms", next.Continue).Rows) == 2
	})
	if rest := b.rowsThen("10ms", page.Continue); len(rest.Rows) != 1 || rest.Rows[0].Name != "c" || rest.Continue != "" {
		t.Errorf("the rest: %+v", rest)
	}
}

// TestPastListBad: what no list has given does not continue one.
func TestPastListBad(t *testing.T) {
	b := newWorkbench(t)
	b.createNotes()
	for _, position := range []string{"x", "x@", "@5", "x@now", "x@~2", "x@never"} {
		b.open("rows/configmaps?at=5&continue=" + url.QueryEscape(position)).is(400).has("does not continue a list")
	}
	b.open("rows/configmaps?at=5&continue=x@5").is(400).has("continue key is not valid")
}

// TestPastListSelected: selectors choose among the objects of the past, too, and those that cannot are refused.
func TestPastListSelected(t *testing.T) {
	b := newWorkbench(t)
	b.ui.rowsAtOnce = 2
	last := ""
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		tier := map[bool]string{true: "front", false: "back"}[name > "b"]
		last = b.make("configmaps", "default", "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {tier: %s}}}", name, tier).GetResourceVersion()
	}
	for query, want := range map[string]string{"labels=tier%3Dfront": "[c d e]", "labels=tier%3Dfront&fields=metadata.name%3Dd": "[d]", "fields=metadata.name%3Dx": "[]"} {
		names := []string{}
		for position := ""; ; {
			var page rowsPage
			a := b.open("rows/configmaps?ns=default&at=" + last + "&" + query + "&continue=" + url.QueryEscape(position)).is(200)
			b.must(json.Unmarshal([]byte(a.html), &page))
			for _, r := range page.Rows {
				names = append(names, r.Name)
			}
			if position = page.Continue; position == "" {
				break
			}
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("%s: %s, not %s", query, got, want)
		}
	}
	b.open("rows/configmaps?at=" + last + "&fields=data.a%3Db").is(400).has("and not data.a")
	b.open("rows/configmaps?at=" + last + "&labels=a%3D%3D%3Db").is(400).has("Labels:")
	b.open("kinds/configmaps?ns=long-gone&at="+last).is(200).has("<option selected>long-gone</option>", `name="labels"`)
	b.as("eve").open("kinds/configmaps?ns=hers").has(`<input id="namespace" data-param="ns" value="hers"`)
}

// TestPastListInBrowser: the script puts the pages together, and sorts over all of them.
func TestPastListInBrowser(t *testing.T) {
	b := newWorkbench(t)
	b.ui.rowsAtOnce = 7
	at := b.by("", configMaps, "default")
	last := ""
	for i := range 30 {
		last = b.create(at, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: map-%02d}}", i)).GetResourceVersion()
	}
	b.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}")
	tab := b.browse("")
	tab.open("kinds/configmaps?ns=default&at=" + last)
	tab.sees("30 objects")
	tab.wait(`document.querySelector("#list tbody tr[aria-rowindex]").innerText.includes("map-00")`)
	for range 2 { // the largest come first when it is pressed again
		eval[int](tab, `[...document.querySelectorAll("#list th button")].find((b) => b.innerText.startsWith("Revision")).click() ?? 1`)
	}
	tab.wait(`document.querySelector("#list tbody tr[aria-rowindex]").innerText.includes("map-29")`)
	tab.wait(`document.querySelector("#list tbody tr[aria-rowindex=\"31\"]").innerText.includes("map-00")`)
	tab.sound()
}
