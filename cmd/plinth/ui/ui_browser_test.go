package ui

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/plinth-io/plinth/server/servertest"
)

// configMap is an object for tests.
func configMap(name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}, "data": data,
	}}
}

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

// TestStrangers: nobody without the cookie sees a page, whatever else he sends.
func TestStrangers(t *testing.T) {
	srv := servertest.Start(t)
	base, address := local(t, srv.Config)
	stranger := tabAt(t, base, "")
	stranger.open(base)
	stranger.sees("Sign in")
	friend := tabAt(t, base, address)
	friend.sees("What changed of late")
	stranger.open(address) // the key was used
	stranger.sees("It lets one browser in, once")
	if !strings.HasPrefix(eval[string](friend, "location.href"), base) || strings.Contains(eval[string](friend, "location.href"), "key") {
		t.Errorf("the address keeps the key: %s", eval[string](friend, "location.href"))
	}
	if cookies := eval[string](friend, "document.cookie"); cookies != "" {
		t.Errorf("scripts see the cookie %q", cookies)
	}
}
