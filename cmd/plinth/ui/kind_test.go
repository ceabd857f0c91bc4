package ui

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/plinth-io/plinth/server/servertest"
)

// TestListInBrowser: the list of a kind shows what is there, goes on with what changes, and its keys work.
func TestListInBrowser(t *testing.T) {
	srv := servertest.Start(t)
	client := dynamic.NewForConfigOrDie(srv.Config).Resource(configMaps).Namespace("default")
	for i := range 3 {
		if _, err := client.Create(t.Context(), configMap(fmt.Sprintf("one-%d", i), map[string]any{"a": "b"}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	base, address := local(t, srv.Config)
	b := tabAt(t, base, address)
	b.open("kinds/configmaps?ns=default")
	b.sees("one-2")
	if _, err := client.Create(t.Context(), configMap("later", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.sees("later")
	if err := client.Delete(t.Context(), "one-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.wait(`!document.body.innerText.includes("one-1")`)
	b.accessible()
	b.keys("j")
	b.keys("\r")
	b.wait(`location.pathname.includes("/objects/configmaps/default/")`)
	b.sees("apiVersion")
	b.accessible()
	b.sound()
}
