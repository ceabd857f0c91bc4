package ui

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// touch changes an object in passing, as somebody else does.
func (b *workbench) touch(resource, namespace, name string) {
	b.Helper()
	_, err := b.of(resource, namespace).Patch(b.Context(), name, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"touched":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// TestScale: the number of replicas is set if the object is as it was looked at.
func TestScale(t *testing.T) {
	b := newWorkbench(t)
	b.make("deployments.v1.apps", "default", webApp)
	path := "objects/deployments.apps/default/web/scale"
	form := b.open(path).is(200).has("wants 3", `value="3"`)
	for _, wrong := range []string{"-1", "many", "", "99999999999"} {
		b.post(path, "rv", form.field("rv"), "replicas", wrong).is(422).has("is no number of replicas")
	}
	b.post(path, "rv", form.field("rv"), "replicas", "5").is(303)
	replicas := func() int64 {
		n, _, _ := unstructured.NestedInt64(b.now("deployments.v1.apps", "default", "web").Object, "spec", "replicas")
		return n
	}
	if replicas() != 5 {
		t.Errorf("%d replicas", replicas())
	}
	b.post(path, "rv", form.field("rv"), "replicas", "7").is(409).has("Changed meanwhile", `value="7"`)
	if replicas() != 5 {
		t.Errorf("%d replicas after a conflict", replicas())
	}
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`)
	b.open("objects/configmaps/default/one/scale").is(404)
}

// TestRestart: the template gets the annotation that kubectl writes, and nothing else changes.
func TestRestart(t *testing.T) {
	b := newWorkbench(t)
	b.make("deployments.v1.apps", "default", webApp)
	path := "objects/deployments.apps/default/web/restart"
	form := b.open(path).is(200).has("3 pods", "RollingUpdate")
	b.touch("deployments.v1.apps", "default", "web")
	b.post(path, "rv", form.field("rv")).is(409).has("Changed meanwhile")
	b.post(path).is(400)
	at := func() string {
		text, _, _ := unstructured.NestedString(b.now("deployments.v1.apps", "default", "web").Object, "spec", "template", "metadata", "annotations", restartedAt)
		return text
	}
	if at() != "" {
		t.Fatalf("restarted at %s though it was changed meanwhile", at())
	}
	b.post(path, "rv", b.open(path).field("rv")).is(303)
	if at() == "" {
		t.Error("it was not restarted")
	}
	b.open(path).is(200).has("It was restarted")
}

// TestDelete: what would go is shown; only what was looked at is deleted; then the way back is shown.
func TestDelete(t *testing.T) {
	b := newWorkbench(t)
	web := b.make("deployments.v1.apps", "default", webApp)
	b.make("configmaps", "default", child, "mid", "apps/v1", "Deployment", "web", web.GetUID())
	path := "objects/deployments.apps/default/web/delete"
	form := b.open(path).is(200).has("Delete web?", ">mid</a>", "1</b> objects depend on it", `value="Background" checked`)
	if b.now("deployments.v1.apps", "default", "web") == nil {
		t.Fatal("looking deletes")
	}
	b.post(path, "policy", "Background").is(400)
	b.post(path, "uid", "other", "rv", form.field("rv"), "policy", "Background").is(409)
	b.touch("deployments.v1.apps", "default", "web")
	b.post(path, "uid", form.field("uid"), "rv", form.field("rv"), "policy", "Background").is(409).has("Delete web?")
	form = b.open(path)
	b.post(path, "uid", form.field("uid"), "rv", form.field("rv"), "policy", "Sideways").is(422)
	done := b.post(path, "uid", form.field("uid"), "rv", form.field("rv"), "policy", "Background").is(303)
	b.open(done.at).is(200).has("is gone", `href="/x/objects/deployments.apps/default/web/undelete"`)
	if b.now("deployments.v1.apps", "default", "web") != nil {
		t.Error("it is still there")
	}
}

// TestDeleteWithin: a namespace and a definition take what is in them along, and what has a finalizer stays for now.
func TestDeleteWithin(t *testing.T) {
	b := newWorkbench(t)
	b.make("namespaces", "", `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
	b.make("configmaps", "shop", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`)
	b.open("objects/namespaces/-/shop/delete").is(200).has("in this namespace go with it", "shop/one", "configmaps")
	b.make("configmaps", "shop", `{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}`)
	form := b.open("objects/configmaps/shop/held/delete").is(200).has("example.com/hold")
	done := b.post("objects/configmaps/shop/held/delete", "uid", form.field("uid"), "rv", form.field("rv"), "policy", "Background").is(303)
	b.open(done.at).is(200).has("Being deleted", "example.com/hold")
}
