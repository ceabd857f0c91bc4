package ui

import (
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/server/servertest"
)

// TestNowInBrowser: changes come live, wait while the page is paused, and there are never more than 500 rows; the chart
// is drawn, and a drag over it leads to the changes of that time.
func TestNowInBrowser(t *testing.T) {
	srv := servertest.Start(t)
	s := newStory(t, srv.Config)
	l, config := newLine(t, srv.Config)
	base, address := local(t, config)
	b := tabAt(t, base, address)
	create := func(name string) {
		t.Helper()
		s.create("ann", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop}}`, name))
	}
	b.wait(`/^\d/.test(document.querySelector("#today")?.textContent) && !!document.querySelector("#day canvas")`) // on the first page
	b.open("now?ns=shop")
	b.wait(`!!document.querySelector("#day canvas") && document.querySelector("#people").innerText.includes("carol")`)
	create("live-one")
	b.wait(`document.querySelector("#log tbody tr").innerText.includes("live-one")`)
	b.keys(" ")
	b.sees("paused")
	create("meanwhile")
	b.sees("paused; 1 came meanwhile")
	b.wait(`!document.querySelector("#log").innerText.includes("meanwhile")`)
	b.keys(" ")
	b.wait(`document.querySelector("#log tbody tr").innerText.includes("meanwhile")`)
	b.accessible()
	for i := range 520 {
		create(fmt.Sprintf("burst-%03d", i))
	}
	b.wait(`document.querySelector("#log tbody tr").innerText.includes("burst-519")`)
	b.wait(`document.querySelectorAll("#log tbody tr").length === 500 && document.querySelector("#log tbody tr:last-child").innerText.includes("burst-020")`)
	b.wait(`new URL(document.querySelector("#older a").href).searchParams.get("until") > 0`)

	l.cut(true)
	create("while-away")
	b.sees("The server is away")
	l.cut(false)
	b.wait(`document.querySelector("#log tbody tr").innerText.includes("while-away")`)
	b.sees("The server is back")

	eval[int](b, `(() => {
		const over = document.querySelector("#day .u-over"), r = over.getBoundingClientRect();
		const at = (type, x) => (type === "mousedown" ? over : document).dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: r.right - x, clientY: r.top + 20, button: 0 }));
		over.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX: r.right - 200, clientY: r.top + 20 }));
		at("mousedown", 200);
		over.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX: r.right - 1, clientY: r.top + 20, movementX: 199 }));
		at("mouseup", 1);
		return 1;
	})()`)
	b.wait(`new URL(location.href).searchParams.get("since") !== null && new URL(location.href).searchParams.get("ns") === "shop"`)
	b.sees("Changes of that time")
	b.sees("while-away")
	b.wait(`!document.querySelector("#log").dataset.live`)
	b.sound()
}
