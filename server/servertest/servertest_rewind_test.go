package servertest_test

import (
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/servertest"
)

// TestRewind has three tests on one server, each of which finds what the first one found: objects that
// were deleted and changed are back with their uids, new ones are gone, with the definition of a custom
// resource. A watch that goes on sees it.
func TestRewind(t *testing.T) {
	srv := servertest.Start(t)
	client := kubernetes.NewForConfigOrDie(srv.Config)
	maps := client.CoreV1().ConfigMaps("default")
	var uid string
	for _, name := range []string{"changed", "deleted"} {
		m, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		uid += string(m.UID)
	}
	snapshot, err := srv.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	for i := range 3 {
		things := defineThings(t, srv)
		thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "one"}}}
		if _, err := things.Create(t.Context(), thing, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		changed := configMap("changed")
		changed.Data["k"] = fmt.Sprint("v", i)
		if _, err := maps.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := maps.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Create(t.Context(), configMap("new"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := srv.Rewind(snapshot); err != nil {
			t.Fatal(err)
		}
		wantRewound(t, client, uid)
		apitest.Eventually(t, "the custom resource is gone", func() bool {
			_, err := things.Get(t.Context(), "one", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	var events []watch.EventType
	for len(events) < 5 {
		select {
		case ev := <-seen.ResultChan():
			events = append(events, ev.Type)
		case <-time.After(2 * time.Minute):
			t.Fatalf("seen %v", events)
		}
	}
	if got, want := fmt.Sprint(events[:3]), "[MODIFIED DELETED ADDED]"; got != want {
		t.Errorf("seen %s, want %s", got, want)
	}
}

// wantRewound looks at the ConfigMaps.
func wantRewound(t *testing.T, client *kubernetes.Clientset, uid string) {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var uids string
	for _, m := range list.Items {
		if m.Name == "changed" || m.Name == "deleted" {
			uids += string(m.UID)
		}
		if m.Name == "new" || m.Name == "changed" && m.Data["k"] != "v" {
			t.Errorf("%s is there with %v", m.Name, m.Data)
		}
	}
	if uids != uid {
		t.Errorf("uids %s, want %s", uids, uid)
	}
}

// defineThings makes a CustomResourceDefinition and returns a client for its objects when they are served.
func defineThings(t *testing.T, srv *servertest.Server) dynamic.ResourceInterface {
	t.Helper()
	preserve := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
		},
	}
	_, err := apiextensions.NewForConfigOrDie(srv.Config).ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	things := dynamic.NewForConfigOrDie(srv.Config).Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"})
	apitest.Eventually(t, "the custom resource is served", func() bool {
		_, err := things.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return things
}
