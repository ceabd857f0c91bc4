package ui

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// TestUndoByKeys: without a mouse somebody finds out who changed a Deployment and what it was before, and takes it
// back, on each database.
func TestUndoByKeys(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		shop := startShop(t, d.Fresh(t))
		base, address := local(t, shop.config)
		b := tabAt(t, base, address)
		b.keys("g")
		b.keys("deploy")
		b.wait(`document.querySelector("#goto-list li.at")?.innerText.includes("deployments.apps")`)
		b.keys("\r")
		b.wait(`location.pathname.endsWith("/kinds/deployments.apps")`)
		b.sees("web")
		for i := 0; i < 10 && eval[string](b, `document.activeElement?.innerText ?? ""`) != "web"; i++ {
			b.keys("j")
		}
		b.keys("\r")
		b.wait(`location.pathname.endsWith("/objects/deployments.apps/shop/web")`)
		b.keys("t")
		b.wait(`location.pathname.endsWith("/timeline")`)
		b.sees("bob changed it")
		b.sees("shop/web:latest")
		b.keys("[")
		b.wait(`document.querySelector("#version-head").innerText.includes("carol changed it")`) // the list has it all the time
		b.keys("r")
		b.wait(`location.pathname.endsWith("/undo")`)
		b.sees("shop/web:1.5.1")
		b.wait(`(document.querySelector("main form button")?.focus(), document.activeElement.tagName === "BUTTON")`)
		b.keys("\r")
		b.wait(`location.pathname.endsWith("/timeline")`)
		b.sound()
		o, err := shop.as("erin", "Deployment", "shop").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if got := containers[0].(map[string]any)["image"]; got != "shop/web:1.5.1" {
			t.Errorf("the image is %v", got)
		}
	})
}
