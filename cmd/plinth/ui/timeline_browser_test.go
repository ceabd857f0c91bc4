package ui

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// browse opens a page of the workbench in a browser.
func (b *workbench) browse(path string) *tab {
	b.Helper()
	shown := tabAt(b.T, b.page.URL+"/x/", b.page.URL+"/x/")
	shown.open(path)
	shown.wait(`document.readyState === "complete"`)
	return shown
}

// rowsAre waits for a number of versions, which the slider has, too.
func (b *tab) rowsAre(n int) {
	b.Helper()
	b.wait(fmt.Sprintf(`document.querySelectorAll("#versions a.version").length === %d && document.querySelectorAll(".dots circle").length === %[1]d &&
		document.querySelector("#slider").max === "%d"`, n, n-1))
}

// chosenIs waits until a version is the one that is shown, in the list and on the slider.
func (b *tab) chosenIs(rv string) {
	b.Helper()
	b.wait(fmt.Sprintf(`(() => {
		const rows = [...document.querySelectorAll("#versions a.version")], at = rows.findIndex((a) => a.getAttribute("aria-current"));
		return rows[at].dataset.rv === %q && document.querySelector("#version").dataset.rv === %[1]q && +document.querySelector("#slider").value === rows.length - 1 - at;
	})()`, rv))
}

// TestTimelineLive: what others do to the object appears without a reload. What the visitor has chosen stays chosen, and
// what has the focus keeps it.
func TestTimelineLive(t *testing.T) {
	f := newWorkbench(t)
	rv := f.createNotes()
	at := f.by("carol", configMaps, "default")
	b := f.browse(notes + "/timeline")
	b.rowsAre(4)
	eval[int](b, `window.opened = 1`)
	b.keys("[")
	b.chosenIs(rv[2])
	eval[int](b, `document.querySelector("#older").focus() ?? 1`)
	f.set(at, "notes", "red", "data", "color")
	b.rowsAre(5)
	b.chosenIs(rv[2])
	b.wait(`document.querySelector("#versions a.version").innerText.includes("carol") && document.activeElement.id === "older" && window.opened === 1`)

	b.open(notes + "/timeline") // the newest is shown, and stays when it is not the newest any longer
	b.rowsAre(5)
	newest := eval[string](b, `document.querySelector("#version").dataset.rv`)
	b.wait(`!!document.querySelector("#version .badge") && document.querySelector("#undo").innerText === "Undo the last change"`)
	eval[int](b, `document.querySelector("#undo").focus() ?? 1`)
	f.set(at, "notes", "white", "data", "color")
	b.rowsAre(6)
	b.chosenIs(newest)
	b.wait(`!document.querySelector("#version .badge") && document.querySelector("#undo").innerText === "Undo this change" && document.activeElement.id === "undo"`)
	b.keys("]")
	b.sees("white")

	eval[int](b, fmt.Sprintf(`document.querySelector('#versions a[data-rv="%s"]').focus() ?? 1`, rv[0]))
	f.must(at.Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	b.rowsAre(7)
	b.wait(fmt.Sprintf(`document.activeElement.dataset.rv === %q && document.querySelector(".subject").innerText.includes("deleted") && document.querySelector("#undo").innerText.startsWith("Bring it back")`, rv[0]))
	f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}}")
	b.rowsAre(8)
	b.accessible()
	b.sound()
}

// TestTimelineLiveStatus: changes of the status become one row while they come, which keeps the focus, and the first
// change makes a slider of a single version.
func TestTimelineLiveStatus(t *testing.T) {
	f := newWorkbench(t)
	at := f.by("ann", deployments, "default")
	f.create(at, webApp)
	status := func(n int64) {
		o, err := at.Get(context.Background(), "web", metav1.GetOptions{})
		f.must(err)
		f.must(unstructured.SetNestedField(o.Object, n, "status", "observedGeneration"))
		_, err = at.UpdateStatus(context.Background(), o, metav1.UpdateOptions{})
		f.must(err)
	}
	b := f.browse("objects/deployments.apps/default/web/timeline")
	b.rowsAre(1)
	b.wait(`document.querySelector("#scrub").hidden`)
	status(7)
	b.sees("A change of the status")
	b.rowsAre(2)
	b.wait(`!document.querySelector("#scrub").hidden`)
	eval[int](b, `document.querySelector("#versions a.folded").click() ?? document.querySelector("#versions a.folded").focus() ?? 1`)
	b.wait(`document.querySelector("#versions a.folded").getAttribute("aria-current") === "true"`)
	for n := range 3 {
		status(int64(8 + n))
	}
	b.sees("4 changes of the status")
	b.rowsAre(2)
	b.wait(`document.activeElement === document.querySelector("#versions a.folded") && document.activeElement.getAttribute("aria-current") === "true"`)
	b.sound()
}

// TestTimelineLiveScroll: what the visitor has scrolled to stays where it is.
func TestTimelineLiveScroll(t *testing.T) {
	f := newWorkbench(t)
	f.createNotes()
	at := f.by("carol", configMaps, "default")
	for i := range 60 {
		f.set(at, "notes", fmt.Sprint(i), "data", "size")
	}
	b := f.browse(notes + "/timeline")
	b.rowsAre(64)
	eval[int](b, `document.querySelector(".versions").scrollTop = 900`)
	eval[int](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))`)
	const seen = `(() => { // the first version that is in view, and where it is
		const top = (e) => e.getBoundingClientRect().top, view = document.querySelector(".versions");
		const first = [...document.querySelectorAll("#versions a.version")].find((a) => top(a) >= top(view));
		return first.dataset.rv + " at " + Math.round(top(first));
	})()`
	before := eval[string](b, seen)
	for range 3 {
		f.set(at, "notes", before, "data", "size")
		f.set(at, "notes", "small", "data", "size")
	}
	b.rowsAre(70)
	eval[int](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))`)
	if after := eval[string](b, seen); after != before {
		t.Errorf("in view was %s, and is %s", before, after)
	}
	b.sound()
}
