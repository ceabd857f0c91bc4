package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	clientrest "k8s.io/client-go/rest"
)

// mediaSeen collects the media types of all bodies.
type mediaSeen struct {
	http.RoundTripper
	mu       sync.Mutex
	sent     []string // guarded by mu
	received []string // guarded by mu
}

func (m *mediaSeen) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Body != nil {
		m.sent = append(m.sent, r.Header.Get("Content-Type"))
	}
	m.received = append(m.received, resp.Header.Get("Content-Type"))
	return resp, nil
}

// want fails the test unless all bodies were CBOR.
func (m *mediaSeen) want(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, media := range slices.Concat(m.sent, m.received) {
		if !slices.Contains([]string{inCBOR, applyCBOR, inSequence}, media) {
			t.Errorf("sent %v, received %v", m.sent, m.received)
			return
		}
	}
	if !slices.Contains(m.sent, applyCBOR) || !slices.Contains(m.received, inSequence) {
		t.Errorf("sent %v, received %v", m.sent, m.received)
	}
}

// preferringCBOR is a configuration of clients that prefer CBOR.
func (h *harness) preferringCBOR() (*clientrest.Config, *mediaSeen) {
	clientfeaturestesting.SetFeatureDuringTest(h.t.(*testing.T), clientfeatures.ClientsAllowCBOR, true)
	clientfeaturestesting.SetFeatureDuringTest(h.t.(*testing.T), clientfeatures.ClientsPreferCBOR, true)
	seen := &mediaSeen{}
	config := h.client()
	config.Wrap(func(t http.RoundTripper) http.RoundTripper {
		seen.RoundTripper = t
		return seen
	})
	return config, seen
}

// TestTypedClientCBOR has a client of client-go do everything in CBOR.
func TestTypedClientCBOR(t *testing.T) {
	h := newCBORHarness(t, nothingStays)
	config, seen := h.preferringCBOR()
	config.AcceptContentTypes = inCBOR
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps, ctx := client.CoreV1().ConfigMaps("default"), t.Context()
	created, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "typed"}, BinaryData: map[string][]byte{"b": {0, 255}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	applied, err := maps.Apply(ctx, applycorev1.ConfigMap("typed", "default").WithData(map[string]string{"k": "v"}), metav1.ApplyOptions{FieldManager: "m"})
	if err != nil || applied.Data["k"] != "v" {
		t.Fatalf("apply: %+v %v", applied, err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Modified || e.Object.(*corev1.ConfigMap).ResourceVersion != applied.ResourceVersion {
		t.Errorf("event: %+v", e)
	}
	got, err := maps.Get(ctx, "typed", metav1.GetOptions{})
	if err != nil || string(got.BinaryData["b"]) != "\x00\xff" {
		t.Errorf("get: %+v %v", got, err)
	}
	got.Data["k"] = "w"
	if updated, err := maps.Update(ctx, got, metav1.UpdateOptions{}); err != nil || updated.Data["k"] != "w" {
		t.Errorf("update: %+v %v", updated, err)
	}
	if list, err := maps.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 3 || list.Items[2].Name != "typed" {
		t.Errorf("list: %+v %v", list, err)
	}
	if err := maps.Delete(ctx, "typed", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Modified {
		t.Errorf("event: %+v", e)
	}
	if e := <-events.ResultChan(); e.Type != watch.Deleted {
		t.Errorf("event: %+v", e)
	}
	seen.want(t)
}

// TestDynamicClientCBOR does the same with custom resources.
func TestDynamicClientCBOR(t *testing.T) {
	h := newCBORHarness(t)
	config, seen := h.preferringCBOR()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	list, ctx := client.Resource(gvr).Namespace("default"), t.Context()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(strings.Replace(widget, `"w"`, `"dynamic"`, 1))); err != nil {
		t.Fatal(err)
	}
	created, err := list.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := list.Watch(ctx, metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if err := unstructured.SetNestedField(object.Object, int64(5), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	applied, err := list.Apply(ctx, "dynamic", object, metav1.ApplyOptions{FieldManager: "m", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := unstructured.NestedInt64(applied.Object, "spec", "replicas"); n != 5 || err != nil {
		t.Errorf("apply: %v %v", applied.Object, err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Modified || e.Object.(*unstructured.Unstructured).GetResourceVersion() != applied.GetResourceVersion() {
		t.Errorf("event: %+v", e)
	}
	if got, err := list.Get(ctx, "dynamic", metav1.GetOptions{}); err != nil || got.GetResourceVersion() != applied.GetResourceVersion() {
		t.Errorf("get: %+v %v", got, err)
	}
	if all, err := list.List(ctx, metav1.ListOptions{}); err != nil || len(all.Items) != 2 || all.Items[0].GetName() != "dynamic" || all.GetKind() != "WidgetList" {
		t.Errorf("list: %+v %v", all, err)
	}
	if err := list.Delete(ctx, "dynamic", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Deleted {
		t.Errorf("event: %+v", e)
	}
	seen.want(t)
	checkMetadataClient(t, config, gvr)
}

// checkMetadataClient reads the metadata of custom resources, in whatever that client asks for.
func checkMetadataClient(t *testing.T, config *clientrest.Config, gvr schema.GroupVersionResource) {
	t.Helper()
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "w" {
		t.Errorf("metadata: %+v %v", list, err)
	}
}
