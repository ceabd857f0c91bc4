package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/metadata"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const inProtobuf = runtime.ContentTypeProtobuf

// encodings are those of client-go. The dynamic client knows only JSON.
var encodings = []string{"json", "protobuf"}

// encoded returns config for clients that talk in one encoding. The test fails unless the
// server answered so.
func encoded(t *testing.T, config *clientrest.Config, encoding string) *clientrest.Config {
	config = clientrest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if encoding == "protobuf" {
		config.ContentType, config.AcceptContentTypes = inProtobuf, inProtobuf+","+runtime.ContentTypeJSON
	}
	c := &counted{t: t, protobuf: encoding == "protobuf"}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return c.around(next) })
	t.Cleanup(func() {
		if c.protobuf == (c.messages.Load() == 0) {
			t.Errorf("%s: %d answers in protobuf, %d in others", encoding, c.messages.Load(), c.others.Load())
		}
	})
	return config
}

// counted counts answers by their encoding. Without protobuf it removes protobuf from the Accept
// header of the metadata client, which has no setting for it.
type counted struct {
	t        *testing.T
	protobuf bool

	messages, others atomic.Int64
}

func (c *counted) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		wants := strings.HasPrefix(r.Header.Get("Accept"), inProtobuf)
		if wants && !c.protobuf {
			r = r.Clone(r.Context())
			r.Header.Set("Accept", withoutProtobuf(r.Header.Get("Accept")))
		}
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		got := strings.HasPrefix(resp.Header.Get("Content-Type"), inProtobuf)
		if got != (wants && c.protobuf) && resp.StatusCode < 300 { // errors have no metadata form
			c.t.Errorf("%s %s: Accept %q is answered with %q", r.Method, r.URL, r.Header.Get("Accept"), resp.Header.Get("Content-Type"))
		}
		if got {
			c.messages.Add(1)
		} else {
			c.others.Add(1)
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func withoutProtobuf(accept string) string {
	var left []string
	for media := range strings.SplitSeq(accept, ",") {
		if !strings.HasPrefix(media, inProtobuf) {
			left = append(left, media)
		}
	}
	return strings.Join(left, ",")
}

// deployment has a field of every sort: quantities, times, numbers or text, booleans,
// maps, lists and pointers.
func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"note": "ü <&> \x00"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromString("30%")), MaxSurge: ptr.To(intstr.FromInt32(1)),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
						Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("2Gi"),
						}},
						LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}},
					}},
					AutomountServiceAccountToken: ptr.To(false),
				},
			},
		},
	}
}

// testVerbs calls each verb of a typed client and then of a metadata client.
func testVerbs(t *testing.T, config *clientrest.Config, ns string) {
	client := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments(ns)
	w, err := client.Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	created, err := client.Create(t.Context(), deployment("a"), metav1.CreateOptions{})
	must(t, err)
	seesDeployment(t, w, watch.Added, created)
	if _, err := client.Create(t.Context(), deployment("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create twice: %v", err)
	}
	invalid := deployment("b")
	invalid.Spec.Replicas = ptr.To[int32](-1)
	_, err = client.Create(t.Context(), invalid, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) {
		t.Errorf("create of something invalid: %v", err)
	}
	got, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("get differs from create (-created +got):\n%s", diff)
	}
	verbsThatChange(t, client, got, w)
	verbsOfMany(t, client)
	verbsOfMetadata(t, metadata.NewForConfigOrDie(config).Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(ns), client)
}

func seesDeployment(t *testing.T, w watch.Interface, want watch.EventType, object *appsv1.Deployment) {
	t.Helper()
	event := nextEvent(t, w)
	if event.Type != want {
		t.Fatalf("event is %s, want %s", event.Type, want)
	}
	if diff := cmp.Diff(object, event.Object); diff != "" {
		t.Errorf("%s event (-object +event):\n%s", want, diff)
	}
}

func verbsThatChange(t *testing.T, client typedappsv1.DeploymentInterface, d *appsv1.Deployment, w watch.Interface) {
	t.Helper()
	old := d.DeepCopy()
	d.Spec.Replicas = ptr.To[int32](3)
	d, err := client.Update(t.Context(), d, metav1.UpdateOptions{})
	must(t, err)
	seesDeployment(t, w, watch.Modified, d)
	if _, err := client.Update(t.Context(), old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
	d.Status.Replicas, d.Status.ObservedGeneration = 3, d.Generation
	d.Spec.Replicas = ptr.To[int32](9)
	d, err = client.UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
	must(t, err)
	seesDeployment(t, w, watch.Modified, d)
	if d.Status.Replicas != 3 || *d.Spec.Replicas != 3 {
		t.Errorf("status update: %d in status, %d in spec", d.Status.Replicas, *d.Spec.Replicas)
	}
	for _, patch := range []struct {
		as    types.PatchType
		body  string
		image string
	}{
		{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"strategic"}]}}}}`, "strategic"},
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"json"}]`, "json"},
		{types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"merge"}]}}}}`, "merge"},
	} {
		d, err = client.Patch(t.Context(), d.Name, patch.as, []byte(patch.body), metav1.PatchOptions{})
		must(t, err)
		seesDeployment(t, w, watch.Modified, d)
		if image := d.Spec.Template.Spec.Containers[0].Image; image != patch.image {
			t.Errorf("image after %s is %q", patch.as, image)
		}
	}
	d, err = client.Apply(t.Context(), applyappsv1.Deployment(d.Name, d.Namespace).WithLabels(map[string]string{"applied": "yes"}), metav1.ApplyOptions{FieldManager: "suite"})
	must(t, err)
	seesDeployment(t, w, watch.Modified, d)
	if d.Labels["applied"] != "yes" || d.Labels["app"] != "a" {
		t.Errorf("labels after apply: %v", d.Labels)
	}
	verbsOfScale(t, client, d.Name)
	nextEvent(t, w)
	must(t, client.Delete(t.Context(), d.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &d.UID}}))
	if event := nextEvent(t, w); event.Type != watch.Deleted || event.Object.(*appsv1.Deployment).UID != d.UID {
		t.Errorf("event after delete: %+v", event)
	}
	if _, err := client.Get(t.Context(), d.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v", err)
	}
}

func verbsOfScale(t *testing.T, client typedappsv1.DeploymentInterface, name string) {
	t.Helper()
	scale, err := client.GetScale(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 3 || scale.Status.Selector != "app=a" {
		t.Errorf("scale: %+v", scale)
	}
	scale.Spec = autoscalingv1.ScaleSpec{Replicas: 5}
	scale, err = client.UpdateScale(t.Context(), name, scale, metav1.UpdateOptions{})
	must(t, err)
	d, err := client.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	if scale.Spec.Replicas != 5 || *d.Spec.Replicas != 5 || scale.ResourceVersion != d.ResourceVersion {
		t.Errorf("updated scale: %+v of %+v", scale, d.Spec.Replicas)
	}
}

// verbsOfMany tests list, its pages, and deletecollection; c, d and e are left afterwards.
func verbsOfMany(t *testing.T, client typedappsv1.DeploymentInterface) {
	t.Helper()
	for _, name := range []string{"c", "d", "e", "x", "y"} {
		_, err := client.Create(t.Context(), deployment(name), metav1.CreateOptions{})
		must(t, err)
	}
	whole, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	page, err := client.List(t.Context(), metav1.ListOptions{Limit: 2})
	must(t, err)
	if page.Continue == "" || page.RemainingItemCount == nil || *page.RemainingItemCount != 3 {
		t.Errorf("first page: %+v", page.ListMeta)
	}
	rest, err := client.List(t.Context(), metav1.ListOptions{Limit: 10, Continue: page.Continue})
	must(t, err)
	if diff := cmp.Diff(whole.Items, append(page.Items, rest.Items...)); diff != "" || len(whole.Items) != 5 {
		t.Errorf("pages differ from the list (-list +pages):\n%s", diff)
	}
	must(t, client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app in (x,y)"}))
	left, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if diff := cmp.Diff(whole.Items[:3], left.Items); diff != "" {
		t.Errorf("left after deletecollection (-want +got):\n%s", diff)
	}
}

func verbsOfMetadata(t *testing.T, client metadata.ResourceInterface, typed typedappsv1.DeploymentInterface) {
	t.Helper()
	list, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	objects, err := typed.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 3 || list.ResourceVersion == "" {
		t.Fatalf("list of metadata: %+v", list)
	}
	for i, item := range list.Items {
		if diff := cmp.Diff(objects.Items[i].ObjectMeta, item.ObjectMeta); diff != "" {
			t.Errorf("metadata differs from the object's (-object +metadata):\n%s", diff)
		}
	}
	w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	defer w.Stop()
	patched, err := client.Patch(t.Context(), "c", types.MergePatchType, []byte(`{"metadata":{"labels":{"l":"1"}}}`), metav1.PatchOptions{})
	must(t, err)
	event := nextEvent(t, w)
	if diff := cmp.Diff(patched, event.Object); diff != "" || event.Type != watch.Modified {
		t.Errorf("event (-patched +event):\n%s", diff)
	}
	got, err := client.Get(t.Context(), "c", metav1.GetOptions{})
	must(t, err)
	if diff := cmp.Diff(patched, got); diff != "" || got.Labels["l"] != "1" {
		t.Errorf("get (-patched +got):\n%s", diff)
	}
	must(t, client.Delete(t.Context(), "c", metav1.DeleteOptions{}))
	if event := nextEvent(t, w); event.Type != watch.Deleted || event.Object.(*metav1.PartialObjectMetadata).UID != got.UID {
		t.Errorf("event after delete: %+v", event)
	}
	must(t, client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	if _, err := client.Get(t.Context(), "d", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after deletecollection: %v", err)
	}
}

// TestEncodingsAgree reads what is written in one encoding in the other: it must be the
// same, to the last field.
func TestEncodingsAgree(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, dsn string) {
		config := serveFor(t, t.TempDir()+"/data", dsn).config(t)
		clients := map[string]kubernetes.Interface{}
		for _, encoding := range encodings {
			clients[encoding] = kubernetes.NewForConfigOrDie(encoded(t, config, encoding))
		}
		for _, writes := range encodings {
			_, err := clients[writes].AppsV1().Deployments("default").Create(t.Context(), deployment(writes), metav1.CreateOptions{})
			must(t, err)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: writes}, Data: map[string][]byte{"k": {0, 255, 10}}, Immutable: ptr.To(true)}
			_, err = clients[writes].CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{})
			must(t, err)
		}
		deployments, secrets := map[string]any{}, map[string]any{}
		for reads, client := range clients {
			d, err := client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
			must(t, err)
			s, err := client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			must(t, err)
			if len(d.Items) != 2 || string(s.Items[0].Data["k"]) != "\x00\xff\n" {
				t.Errorf("%s reads %d deployments and %+v", reads, len(d.Items), s.Items)
			}
			// The lists' own revisions differ where a controller wrote between them.
			deployments[reads], secrets[reads] = d.Items, s.Items
		}
		if diff := cmp.Diff(deployments["json"], deployments["protobuf"]); diff != "" {
			t.Errorf("deployments (-json +protobuf):\n%s", diff)
		}
		if diff := cmp.Diff(secrets["json"], secrets["protobuf"]); diff != "" {
			t.Errorf("secrets (-json +protobuf):\n%s", diff)
		}
	})
}
