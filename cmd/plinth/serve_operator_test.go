package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

var (
	siteResource     = schema.GroupVersionResource{Group: "web.example.com", Version: "v1", Resource: "sites"}
	siteBetaResource = siteResource.GroupResource().WithVersion("v1beta1")
	crdResource      = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// TestOperatorModule: what is built on controller-runtime may link servertest, too, for it asks for the libraries that plinth
// links, in the same versions. docs/testing.md names them.
func TestOperatorModule(t *testing.T) {
	sameVersions(t, "envtest")
	versions := sameVersions(t, "operator")
	text := readDocument(t, "docs/testing.md")
	for _, path := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"} {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(path) + `.*\| (v\S+) \|$`).FindStringSubmatch(text)
		if row == nil || !strings.HasPrefix(versions[path], row[1]+".") {
			t.Errorf("docs/testing.md says %q; testdata/operator/go.mod has %s %s", row, path, versions[path])
		}
	}
}

// TestOperator has an operator made with controller-runtime, testdata/operator, manage
// custom resources of two versions, through its whole life.
func TestOperator(t *testing.T) {
	dir := t.TempDir()
	build := sync.OnceValues(func() (string, error) { return buildOperator(dir) })
	aloneAndShared(t, func(t *testing.T, dsn string) {
		program, err := build()
		must(t, err)
		s := newSites(t, program, dsn)
		s.install(t)
		a := s.files.start(t, "a")
		s.hooks.point(a.address)
		soon(t, "an operator leads", func() bool { return s.leader(t) != "" })
		b := s.files.start(t, "b")

		seen := s.follow(t)
		s.testDefaults(t)
		s.testRefusals(t)
		s.testOwned(t)
		s.testStatus(t)
		s.testVersions(t)
		s.testReverts(t)
		s.testRestart(t)
		s.testHandOver(t, a, b)
		s.testScale(t)
		seen.check(t, s)
		s.testDeletion(t)
		s.testEnd(t)
		b.stop(t)
	})
}

// sites is what the steps of TestOperator share. The operators and the clients reach the
// server through a forwarder, and so does the server the operators' webhooks.
type sites struct {
	dsn, dir      string
	plinth        *process
	front, hooks  *forwarder
	files         *operatorFiles
	config        *clientrest.Config
	kube          kubernetes.Interface
	anything      dynamic.Interface
	v1, beta      dynamic.ResourceInterface
	warnings      *warnings
	warningClient dynamic.ResourceInterface
}

func newSites(t *testing.T, program, dsn string) *sites {
	t.Helper()
	s := &sites{dsn: dsn, dir: t.TempDir() + "/data", front: newForwarder(t), hooks: newForwarder(t)}
	s.serve(t)
	s.files = newOperatorFiles(t, program, s.plinth, s.front.url())
	s.config = s.plinth.config(t)
	s.config.Host = s.front.url()
	s.kube = kubernetes.NewForConfigOrDie(s.config)
	s.anything = dynamic.NewForConfigOrDie(s.config)
	s.v1, s.beta = s.anything.Resource(siteResource).Namespace("default"), s.anything.Resource(siteBetaResource).Namespace("default")
	warned := clientrest.CopyConfig(s.config)
	s.warnings = &warnings{}
	warned.WarningHandler = s.warnings
	s.warningClient = dynamic.NewForConfigOrDie(warned).Resource(siteResource).Namespace("default")
	return s
}

func (s *sites) serve(t *testing.T) {
	t.Helper()
	s.plinth = serveFor(t, s.dir, s.dsn)
	s.front.point(strings.TrimPrefix(s.plinth.url, "https://"))
}

// install applies the definition and the webhooks' configurations.
func (s *sites) install(t *testing.T) {
	t.Helper()
	crd := readObjects(t, "crd.yaml")[0]
	must(t, unstructured.SetNestedMap(crd.Object, s.clientConfig("/convert"), "spec", "conversion", "webhook", "clientConfig"))
	apply := metav1.ApplyOptions{FieldManager: "test"}
	_, err := s.anything.Resource(crdResource).Apply(t.Context(), crd.GetName(), crd, apply)
	must(t, err)
	soon(t, "the definition is established", func() bool {
		crd, err := s.anything.Resource(crdResource).Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		must(t, err)
		return condition(crd, "Established") == "True"
	})
	for _, o := range readObjects(t, "webhooks.yaml") {
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		must(t, err)
		for _, h := range hooks {
			path, _, err := unstructured.NestedString(h.(map[string]any), "clientConfig", "url")
			must(t, err)
			h.(map[string]any)["clientConfig"] = s.clientConfig(path)
		}
		must(t, unstructured.SetNestedSlice(o.Object, hooks, "webhooks"))
		resource := o.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(o.GetKind()) + "s")
		_, err = s.anything.Resource(resource).Apply(t.Context(), o.GetName(), o, apply)
		must(t, err)
	}
}

func (s *sites) clientConfig(path string) map[string]any {
	return map[string]any{"url": s.hooks.url() + path, "caBundle": base64.StdEncoding.EncodeToString(s.files.certificate)}
}

func readObjects(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "operator", name))
	must(t, err)
	var all []*unstructured.Unstructured
	for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

// newSite returns a Site of either version.
func newSite(resource schema.GroupVersionResource, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": "Site",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func (s *sites) get(t *testing.T, client dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := client.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return o
}

func (s *sites) patch(t *testing.T, client dynamic.ResourceInterface, name, patch string) *unstructured.Unstructured {
	t.Helper()
	o, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
	return o
}

func (s *sites) leader(t *testing.T) string {
	t.Helper()
	lease, err := s.kube.CoordinationV1().Leases("default").Get(t.Context(), "site-operator", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	must(t, err)
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func (s *sites) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d, err := s.kube.AppsV1().Deployments("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return d
}

// condition is the status of an object's condition, if it was observed at the object's
// generation or says nothing of one.
func condition(o *unstructured.Unstructured, name string) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		c := c.(map[string]any)
		at, has := c["observedGeneration"]
		if c["type"] == name && (!has || at == o.GetGeneration()) {
			return c["status"].(string)
		}
	}
	return ""
}

func field(o *unstructured.Unstructured, path string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	return v
}

// testDefaults creates a Site in each version; the webhook's defaults are in the answers.
func (s *sites) testDefaults(t *testing.T) {
	t.Helper()
	hosts := []any{"a.example.org", "www.a.example.org"}
	a, err := s.v1.Create(t.Context(), newSite(siteResource, "a", map[string]any{"hosts": hosts, "pages": map[string]any{"index.html": "hello"}}), metav1.CreateOptions{})
	must(t, err)
	image := map[string]any{"repository": "nginx", "tag": "stable"}
	want := map[string]any{"hosts": hosts, "replicas": int64(1), "image": image, "pages": map[string]any{"index.html": "hello"}}
	if diff := cmp.Diff(want, a.Object["spec"]); diff != "" || a.GetLabels()["web.example.com/host"] != "a.example.org" {
		t.Errorf("created in v1, with labels %v (-want +got):\n%s", a.GetLabels(), diff)
	}
	pages := []any{map[string]any{"path": "index.html", "text": "hi"}}
	b, err := s.beta.Create(t.Context(), newSite(siteBetaResource, "b", map[string]any{"host": "b.example.org", "image": "httpd:2", "pages": pages}), metav1.CreateOptions{})
	must(t, err)
	want = map[string]any{"host": "b.example.org", "replicas": int64(1), "image": "httpd:2", "pages": pages}
	if diff := cmp.Diff(want, b.Object["spec"]); diff != "" || b.GetLabels()["web.example.com/host"] != "b.example.org" {
		t.Errorf("created in v1beta1, with labels %v (-want +got):\n%s", b.GetLabels(), diff)
	}
}

// testRefusals creates Sites that the schema, its rules or the validating webhook reject.
func (s *sites) testRefusals(t *testing.T) {
	t.Helper()
	soon(t, "the operator's cache has the hosts of a", func() bool {
		_, err := s.v1.Create(t.Context(), newSite(siteResource, "x", map[string]any{"hosts": []any{"a.example.org"}}), metav1.CreateOptions{DryRun: []string{"All"}})
		return err != nil
	})
	for name, tt := range map[string]struct {
		spec map[string]any
		has  string
	}{
		"host of another": {map[string]any{"hosts": []any{"x.example.org", "a.example.org"}},
			`admission webhook "validate.web.example.com" denied the request: Site.web.example.com "x" is invalid: spec.hosts[1]: Invalid value: "a.example.org": belongs to default/a`},
		"host without a dot": {map[string]any{"hosts": []any{"localhost"}}, `spec.hosts: Invalid value: a host needs a dot: localhost`},
		"host twice":         {map[string]any{"hosts": []any{"x.example.org", "x.example.org"}}, `spec.hosts[1]: Duplicate value: "x.example.org"`},
		"replicas":           {map[string]any{"hosts": []any{"x.example.org"}, "replicas": int64(11)}, "spec.replicas in body should be less than or equal to 10"},
		"no hosts":           {map[string]any{}, "spec.hosts: Required value"},
	} {
		_, err := s.v1.Create(t.Context(), newSite(siteResource, "x", tt.spec), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.has) {
			t.Errorf("%s: %v; want %s", name, err, tt.has)
		}
	}
	_, err := s.v1.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"image":{"repository":"caddy"}}}`), metav1.PatchOptions{})
	if want := "spec.image: Forbidden: the image's repository cannot be changed"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another repository: %v; want %s", err, want)
	}
	_, err = s.warningClient.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"image":{"tag":"latest"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
	must(t, err)
	if got := s.warnings.all(); !slices.Equal(got, []string{"spec.image.tag: latest is another image each day"}) {
		t.Errorf("warnings %q", got)
	}
	if tag := field(s.get(t, s.v1, "a"), "spec.image.tag"); tag != "stable" {
		t.Errorf("after a dry run the tag is %v", tag)
	}
}

// testOwned checks the objects that the operator creates.
func (s *sites) testOwned(t *testing.T) {
	t.Helper()
	for name, want := range map[string]string{"a": "nginx:stable 1 hello", "b": "httpd:2 1 hi"} {
		soon(t, "what "+name+" owns is there", func() bool {
			d := s.deployment(t, name)
			cm, err := s.kube.CoreV1().ConfigMaps("default").Get(t.Context(), name+"-pages", metav1.GetOptions{})
			if apierrors.IsNotFound(err) || len(d.Spec.Template.Spec.Containers) == 0 {
				return false
			}
			must(t, err)
			if m := cm.ManagedFields; len(m) != 1 || m[0].Manager != "site-operator" || m[0].Operation != metav1.ManagedFieldsOperationApply {
				t.Errorf("managed fields of what was applied: %+v", m)
			}
			if owner := metav1.GetControllerOf(cm); owner == nil || owner.UID != s.get(t, s.v1, name).GetUID() {
				t.Errorf("%s is controlled by %+v", cm.Name, owner)
			}
			return fmt.Sprintf("%s %d %s", d.Spec.Template.Spec.Containers[0].Image, *d.Spec.Replicas, cm.Data["index.html"]) == want
		})
	}
	soon(t, "the operator's event is there", func() bool {
		events, err := s.kube.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Site,involvedObject.name=a,reason=Deployed"})
		must(t, err)
		return len(events.Items) == 1
	})
	if got := s.published(t); !slices.Equal(got, []string{"default.a", "default.b"}) {
		t.Errorf("published are %q", got)
	}
}

func (s *sites) published(t *testing.T) []string {
	t.Helper()
	files, err := os.ReadDir(s.files.published)
	must(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// testStatus is the Deployment controller: when it says that replicas are ready, the
// operator says that the Site is.
func (s *sites) testStatus(t *testing.T) {
	t.Helper()
	soon(t, "a is not ready", func() bool { return condition(s.get(t, s.v1, "a"), "Ready") == "False" })
	s.setReady(t, "a", 1)
	soon(t, "a is ready", func() bool { return condition(s.get(t, s.v1, "a"), "Ready") == "True" })
	a := s.get(t, s.v1, "a")
	if a.GetGeneration() != 1 || field(a, "status.observedGeneration") != int64(1) || field(a, "status.replicas") != int64(1) {
		t.Errorf("generation %d, status %v", a.GetGeneration(), a.Object["status"])
	}
	// What is written to the main resource leaves the status alone, and the other way round.
	must(t, unstructured.SetNestedField(a.Object, int64(7), "status", "observedGeneration"))
	must(t, unstructured.SetNestedField(a.Object, "y.example.org", "metadata", "annotations", "note"))
	a, err := s.v1.Update(t.Context(), a, metav1.UpdateOptions{})
	must(t, err)
	if a.GetGeneration() != 1 || field(a, "status.observedGeneration") != int64(1) {
		t.Errorf("after an update: generation %d, status %v", a.GetGeneration(), a.Object["status"])
	}
}

// setReady says in a Deployment's status how many replicas are ready.
func (s *sites) setReady(t *testing.T, name string, n int32) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"replicas":%d,"readyReplicas":%d}}`, n, n)
	_, err := s.kube.AppsV1().Deployments("default").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	must(t, err)
}

// testVersions reads and writes each Site in the version that it was not made in.
func (s *sites) testVersions(t *testing.T) {
	t.Helper()
	a := s.get(t, s.beta, "a")
	if field(a, "spec.host") != "a.example.org" || a.GetAnnotations()["web.example.com/more-hosts"] != "www.a.example.org" || condition(a, "Ready") != "True" {
		t.Errorf("in v1beta1: %v", a.Object)
	}
	s.patch(t, s.beta, "a", `{"spec":{"host":"aa.example.org"}}`)
	a = s.get(t, s.v1, "a")
	if diff := cmp.Diff([]any{"aa.example.org", "www.a.example.org"}, field(a, "spec.hosts")); diff != "" || a.GetGeneration() != 2 {
		t.Errorf("patched in v1beta1, generation %d (-want +got):\n%s", a.GetGeneration(), diff)
	}
	if _, has := a.GetAnnotations()["web.example.com/more-hosts"]; has {
		t.Errorf("annotations in v1: %v", a.GetAnnotations())
	}
	b, err := s.beta.Apply(t.Context(), "b", newSite(siteBetaResource, "b", map[string]any{"host": "b.example.org",
		"pages": []any{map[string]any{"path": "more.html", "text": "more"}}}), metav1.ApplyOptions{FieldManager: "author"})
	must(t, err)
	if pages, _ := field(b, "spec.pages").([]any); len(pages) != 2 {
		t.Errorf("applied in v1beta1: pages %v", pages)
	}
	soon(t, "the operator publishes a page that was applied in v1beta1", func() bool {
		cm, err := s.kube.CoreV1().ConfigMaps("default").Get(t.Context(), "b-pages", metav1.GetOptions{})
		must(t, err)
		return maps.Equal(cm.Data, map[string]string{"index.html": "hi", "more.html": "more"})
	})
	soon(t, "a's change in v1beta1 is observed", func() bool { return field(s.get(t, s.beta, "a"), "status.observedGeneration") == int64(2) })
}

// testReverts changes and deletes what the operator made.
func (s *sites) testReverts(t *testing.T) {
	t.Helper()
	configMaps, deployments := s.kube.CoreV1().ConfigMaps("default"), s.kube.AppsV1().Deployments("default")
	_, err := configMaps.Patch(t.Context(), "a-pages", types.MergePatchType, []byte(`{"data":{"index.html":"defaced"}}`), metav1.PatchOptions{})
	must(t, err)
	soon(t, "the page is as it was", func() bool {
		cm, err := configMaps.Get(t.Context(), "a-pages", metav1.GetOptions{})
		must(t, err)
		return cm.Data["index.html"] == "hello"
	})
	before := s.deployment(t, "a")
	must(t, deployments.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	soon(t, "there is another Deployment", func() bool {
		d := s.deployment(t, "a")
		return d.UID != "" && d.UID != before.UID
	})
	s.setReady(t, "a", 1)
	soon(t, "a is ready again", func() bool { return condition(s.get(t, s.v1, "a"), "Ready") == "True" })
}

// testRestart stops the server, changes nothing, and serves again: the operator goes on.
func (s *sites) testRestart(t *testing.T) {
	t.Helper()
	leader := s.leader(t)
	must(t, s.plinth.stop())
	s.serve(t)
	s.patch(t, s.v1, "a", `{"spec":{"pages":{"index.html":"hello again"}}}`)
	soon(t, "the operator goes on after a restart", func() bool { return field(s.get(t, s.v1, "a"), "status.observedGeneration") == int64(3) })
	if now := s.leader(t); now != leader {
		t.Errorf("%s leads after %s", now, leader)
	}
}

// testHandOver stops the leader; the other operator takes its work over. In between the
// webhooks are away.
func (s *sites) testHandOver(t *testing.T, a, b *operator) {
	t.Helper()
	leader := s.leader(t)
	a.stop(t)
	_, err := s.v1.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), `failed calling webhook "default.web.example.com"`) {
		t.Errorf("a write without its webhooks: %v", err)
	}
	s.hooks.point(b.address)
	soon(t, "the other operator leads", func() bool { now := s.leader(t); return now != "" && now != leader })
}

// testScale scales by the subresource, in the same way as a horizontal autoscaler.
func (s *sites) testScale(t *testing.T) {
	t.Helper()
	scale, err := s.v1.Get(t.Context(), "a", metav1.GetOptions{}, "scale")
	must(t, err)
	if field(scale, "spec.replicas") != int64(1) || field(scale, "status.replicas") != int64(1) || field(scale, "status.selector") != "site=a" {
		t.Errorf("scale: %v", scale.Object)
	}
	must(t, unstructured.SetNestedField(scale.Object, int64(3), "spec", "replicas"))
	_, err = s.v1.Update(t.Context(), scale, metav1.UpdateOptions{}, "scale")
	must(t, err)
	soon(t, "the Deployment is scaled", func() bool { return *s.deployment(t, "a").Spec.Replicas == 3 })
	soon(t, "a is not ready", func() bool { return condition(s.get(t, s.v1, "a"), "Ready") == "False" })
	s.setReady(t, "a", 3)
	soon(t, "a is ready", func() bool { return condition(s.get(t, s.v1, "a"), "Ready") == "True" })
	if a := s.get(t, s.v1, "a"); a.GetGeneration() != 4 || field(a, "status.observedGeneration") != int64(4) {
		t.Errorf("generation %d, status %v", a.GetGeneration(), a.Object["status"])
	}
}

// testDeletion deletes a Site: the finalizer holds it until the operator has cleaned up,
// and what it owned goes after it.
func (s *sites) testDeletion(t *testing.T) {
	t.Helper()
	s.patch(t, s.v1, "a", `{"metadata":{"annotations":{"web.example.com/protected":"yes"}}}`)
	err := s.beta.Delete(t.Context(), "a", metav1.DeleteOptions{})
	if want := `admission webhook "validate.web.example.com" denied the request: the site is protected`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("deletion of what is protected: %v; want %s", err, want)
	}
	s.patch(t, s.v1, "a", `{"metadata":{"annotations":{"web.example.com/protected":null}}}`)
	must(t, s.v1.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
	soon(t, "a is gone", func() bool { return s.isGone(t, "a") })
	if got := s.published(t); !slices.Equal(got, []string{"default.b"}) {
		t.Errorf("published are %q", got)
	}
	s.expectCollected(t, "a")
}

func (s *sites) isGone(t *testing.T, name string) bool {
	t.Helper()
	_, err := s.v1.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}

// expectCollected waits until what a Site owned is gone.
func (s *sites) expectCollected(t *testing.T, name string) {
	t.Helper()
	soon(t, "what "+name+" owned is gone", func() bool {
		_, err := s.kube.CoreV1().ConfigMaps("default").Get(t.Context(), name+"-pages", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && s.deployment(t, name).UID == ""
	})
}

// testEnd deletes the definition while there is a Site.
func (s *sites) testEnd(t *testing.T) {
	t.Helper()
	crds := s.anything.Resource(crdResource)
	must(t, crds.Delete(t.Context(), "sites.web.example.com", metav1.DeleteOptions{}))
	soon(t, "the definition is gone", func() bool {
		_, err := crds.Get(t.Context(), "sites.web.example.com", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if got := s.published(t); len(got) != 0 {
		t.Errorf("published are %q", got)
	}
	s.expectCollected(t, "b")
	soon(t, "the resource is gone", func() bool {
		_, err := s.kube.Discovery().ServerResourcesForGroupVersion("web.example.com/v1")
		return apierrors.IsNotFound(err)
	})
}

// follower has informers of a resource in its versions, and of its metadata.
type follower struct {
	informers map[string]cache.SharedIndexInformer
	stop      func()
}

func (s *sites) follow(t *testing.T) *follower {
	t.Helper()
	anything := dynamicinformer.NewDynamicSharedInformerFactory(s.anything, 0)
	partial := metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(s.config), 0)
	f := &follower{informers: map[string]cache.SharedIndexInformer{
		"v1":       anything.ForResource(siteResource).Informer(),
		"v1beta1":  anything.ForResource(siteBetaResource).Informer(),
		"metadata": partial.ForResource(siteBetaResource).Informer(),
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for name, informer := range f.informers {
		_, err := informer.AddEventHandler(notListedAgain(inOrder(t, name)))
		must(t, err)
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	f.stop = func() { cancel(); running.Wait() }
	t.Cleanup(f.stop)
	return f
}

// notListedAgain leaves out what an informer tells of an object that has not changed, when
// it lists anew: it does so because the forwarder takes connections while the server is
// away, and closes them.
func notListedAgain(all cache.ResourceEventHandlerFuncs) cache.ResourceEventHandler {
	update := all.UpdateFunc
	all.UpdateFunc = func(before, after any) {
		if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
			update(before, after)
		}
	}
	return all
}

// check waits until all have what the server has, each in its version, and ends them.
func (f *follower) check(t *testing.T, s *sites) {
	t.Helper()
	defer f.stop()
	for name, informer := range f.informers {
		soon(t, "the informer of "+name+" is up to date", func() bool {
			list, err := s.v1.List(t.Context(), metav1.ListOptions{})
			must(t, err)
			want := versions{}
			for _, o := range list.Items {
				want[o.GetName()] = o.GetResourceVersion()
			}
			return maps.Equal(want, held(informer.GetStore()))
		})
	}
	for version, path := range map[string]string{"v1": "spec.hosts", "v1beta1": "spec.host"} {
		for _, o := range f.informers[version].GetStore().List() {
			o := o.(*unstructured.Unstructured)
			if o.GetAPIVersion() != "web.example.com/"+version || field(o, path) == nil {
				t.Errorf("the informer of %s has %v", version, o.Object)
			}
		}
	}
}

// warnings collects the texts of Warning headers.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
