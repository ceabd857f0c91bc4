package ui

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/plinth-io/plinth/server/servertest"
)

// hostileText is text that becomes a script wherever it is read as HTML, in an attribute or in a script.
const hostileText = `"'><img src=x onerror="window.broken=1"><script>window.broken=1</script>{{.}}</td>javascript:window.broken=1//` + "\u2028\u202e\x01"

// TestHostileObjects: what others have written into an object is text on every page, and nothing else.
func TestHostileObjects(t *testing.T) {
	srv := servertest.Start(t)
	client := dynamic.NewForConfigOrDie(srv.Config)
	m := configMap("hostile", map[string]any{"text": hostileText, "lines": "a\n" + hostileText + "\nb"})
	m.SetAnnotations(map[string]string{"a": hostileText})
	maps := client.Resource(configMaps).Namespace("default")
	made, err := maps.Create(t.Context(), m, metav1.CreateOptions{FieldManager: `<script>window.broken=1</script>`})
	if err != nil {
		t.Fatal(err)
	}
	made.SetAnnotations(map[string]string{"a": hostileText + "2"})
	if _, err := maps.Update(t.Context(), made, metav1.UpdateOptions{FieldManager: `"><img src=x onerror=window.broken=1>`}); err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "hostiles.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "hostiles", "singular": "hostile", "kind": "Hostile"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"additionalPrinterColumns": []any{map[string]any{"name": `<script>window.broken=1</script>`, "type": "string", "jsonPath": ".spec.text", "description": hostileText}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "description": hostileText, "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
						"text": map[string]any{"type": "string", "description": hostileText, "default": hostileText},
					}}},
				}},
			}},
		},
	}}
	if _, err := client.Resource(resources["CustomResourceDefinition"]).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "hostile", "namespace": "default"}, "reason": hostileText, "message": hostileText, "type": "Normal",
		"involvedObject": map[string]any{"kind": "ConfigMap", "namespace": "default", "name": "hostile", "uid": string(made.GetUID())},
	}}
	if _, err := client.Resource(configMaps.GroupVersion().WithResource("events")).Namespace("default").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	base, address := local(t, srv.Config)
	b := tabAt(t, base, address)
	for _, path := range []string{
		"", "kinds/configmaps?ns=default", "kinds/hostiles.example.com", "objects/configmaps/default/hostile", "objects/configmaps/default/hostile/timeline",
		"objects/configmaps/default/hostile/timeline?view=side", "objects/configmaps/default/hostile/blame", "objects/configmaps/default/hostile/tree",
		"objects/configmaps/default/hostile/edit", "objects/configmaps/default/hostile/delete", "objects/configmaps/default/hostile/undo", "now", "trash",
		"definitions", "definitions/hostiles.example.com", "search?q=%3Cimg+src=x+onerror=window.broken=1%3E",
		"kinds/configmaps?ns=%22%3E%3Cscript%3Ewindow.broken=1%3C/script%3E", "kinds/%3Cscript%3Ewindow.broken=1%3C%2Fscript%3E", "?at=%3Cscript%3Ewindow.broken=1%3C/script%3E",
	} {
		b.open(path)
		b.wait(`!!document.querySelector("main h1, main h2")`)
		if broken := eval[bool](b, `new Promise((done) => setTimeout(() => done("broken" in window || !!document.querySelector("main img")), 150))`); broken {
			t.Errorf("%s ran a script of somebody else", path)
		}
	}
}
