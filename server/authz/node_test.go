package authz

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

var (
	podPrefix        = object.Prefix("", "pods")
	volumePrefix     = object.Prefix("", "persistentvolumes")
	attachmentPrefix = object.Prefix(storagev1.GroupName, "volumeattachments")
)

// podOn is a pod with a secret, on a node unless that is empty.
func podOn(node, name, secret string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: "sa-" + name, Volumes: []corev1.Volume{
			{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}},
			{Name: "c", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c-" + name}}},
		}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// A node's rights follow its pods from one request to the next.
func TestNodeFollowsStore(t *testing.T) {
	for _, window := range []int{32 << 20, 1} { // with the changes in memory, and without
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			testNodeFollowsStore(t, storetest.Open(t, storetest.Memory, sqlstore.Options{WindowBytes: window}))
		})
	}
}

func testNodeFollowsStore(t *testing.T, store *sqlstore.Store) {
	a := newAuthorizer(t, store, nil)
	may := func(node, resource string) bool {
		t.Helper()
		namespace := "n"
		if resource == "persistentvolumes/v" {
			namespace = ""
		}
		decision, _ := ask(t, a, kubelet(node), "get", namespace, resource)
		return decision == authorizer.DecisionAllow
	}
	want := func(after string, n1, n2 bool) {
		t.Helper()
		if got1, got2 := may("n1", "secrets/s"), may("n2", "secrets/s"); got1 != n1 || got2 != n2 {
			t.Errorf("after %s: n1 %v, n2 %v", after, got1, got2)
		}
	}
	want("nothing", false, false)
	put(t, store, podPrefix, podOn("", "p", "s"))
	want("a pod without a node", false, false)
	put(t, store, podPrefix, podOn("n1", "p", "s"))
	want("its binding", true, false)
	put(t, store, podPrefix, podOn("n1", "p", "s", func(p *corev1.Pod) { p.Status.Phase, p.Annotations = "Running", map[string]string{"spec": `"spec":{`} }))
	want("its status", true, false)
	put(t, store, podPrefix, podOn("n2", "q", "s"))
	want("another pod elsewhere", true, true)
	remove(t, store, podPrefix, "n", "p")
	want("its deletion", false, true)
	put(t, store, podPrefix, podOn("n1", "q", "s"))
	want("the other pod on another node", true, false)
	put(t, store, podPrefix, podOn("n1", "q", "other"))
	want("another secret", false, false)
	put(t, store, podPrefix, podOn("n1", "mirror", "s", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }))
	want("a mirror pod", false, false)
	put(t, store, podPrefix, podOn("n1", "q", "other", func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "e", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}},
		}}}
	}))
	want("an ephemeral container", true, false)

	volume := &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "n", Name: "c-q"}},
	}
	if may("n1", "persistentvolumes/v") {
		t.Error("a volume before it is there")
	}
	put(t, store, volumePrefix, volume)
	if !may("n1", "persistentvolumes/v") || may("n2", "persistentvolumes/v") {
		t.Error("the volume of a claim")
	}
	remove(t, store, volumePrefix, "", "v")
	if may("n1", "persistentvolumes/v") {
		t.Error("a volume that is gone")
	}
	put(t, store, attachmentPrefix, &storagev1.VolumeAttachment{
		TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1"},
	})
	what := authorizer.AttributesRecord{User: kubelet("n1"), Verb: "get", APIGroup: "storage.k8s.io", Resource: "volumeattachments", Name: "a", ResourceRequest: true}
	if decision, reason, err := a.Authorize(t.Context(), what); decision != authorizer.DecisionAllow {
		t.Errorf("its attachment: %v %q %v", decision, reason, err)
	}
}

// A node reads the requests for certificates that name it, as long as they are there.
func TestNodeReadsItsCertificateRequests(t *testing.T) {
	store := openStore(t)
	n := newNode(store)
	want := func(after, node string, want authorizer.Decision) {
		t.Helper()
		what := authorizer.AttributesRecord{
			User: kubelet(node), Verb: "get", APIGroup: "certificates.k8s.io", Resource: "podcertificaterequests",
			Namespace: "n", Name: "r", ResourceRequest: true,
		}
		if got, reason, err := n.Authorize(t.Context(), what); got != want {
			t.Errorf("%s, %s: %v %q %v", after, node, got, reason, err)
		}
	}
	prefix := object.Prefix(certificatesv1.GroupName, "podcertificaterequests")
	want("nothing", "n1", authorizer.DecisionNoOpinion)
	put(t, store, prefix, &certificatesv1.PodCertificateRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "PodCertificateRequest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r"}, Spec: certificatesv1.PodCertificateRequestSpec{NodeName: "n1"},
	})
	want("its creation", "n1", authorizer.DecisionAllow)
	want("its creation", "n2", authorizer.DecisionNoOpinion)
	remove(t, store, prefix, "n", "r")
	want("its deletion", "n1", authorizer.DecisionNoOpinion)
}

// A pod that can no longer be read gives its node no rights.
func TestNodeForgetsUnreadable(t *testing.T) {
	store := openStore(t)
	n := newNode(store)
	want := func(what string, want authorizer.Decision) {
		t.Helper()
		if got, _ := ask(t, n, kubelet("n1"), "get", "n", "secrets/s"); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	put(t, store, podPrefix, podOn("n1", "p", "s"))
	want("a pod", authorizer.DecisionAllow)
	readable := store.Get(podPrefix + "n/p")
	if _, err := storetest.Put(t.Context(), store, podPrefix+"n/p", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"nodeName":7}}`); err != nil {
		t.Fatal(err)
	}
	want("a pod that cannot be decoded", authorizer.DecisionNoOpinion)
	put(t, store, podPrefix, podOn("n1", "p", "s"))
	want("the pod again", authorizer.DecisionAllow)
	n.parts[0].apply(&sqlstore.Event{Type: sqlstore.Put, Entry: unreadable(t, readable), Prev: readable})
	want("a pod that cannot be decrypted", authorizer.DecisionNoOpinion)
}

// keyless encrypts, and cannot decrypt.
type keyless struct{}

func (keyless) ToStorage(context.Context, string, []byte) ([]byte, error) {
	return []byte("sealed"), nil
}

func (keyless) FromStorage(context.Context, string, []byte) ([]byte, bool, error) {
	return nil, false, errors.New("there is no key")
}

// unreadable returns an entry of the same key that cannot be decrypted.
func unreadable(t *testing.T, e *sqlstore.Entry) *sqlstore.Entry {
	t.Helper()
	file := "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	store := storetest.Open(t, file, sqlstore.Options{Transformer: keyless{}})
	if _, err := storetest.Put(t.Context(), store, e.Key, string(object.Unsplice(e))); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return storetest.Open(t, file, sqlstore.Options{Transformer: keyless{}}).Get(e.Key)
}

// Others than nodes cost no graph.
func TestNodeIsBuiltLate(t *testing.T) {
	store := openStore(t)
	put(t, store, podPrefix, podOn("n1", "p", "s"))
	n := newNode(store)
	ask(t, n, ada, "get", "n", "secrets/s")
	ask(t, n, person("system:node:n1"), "get", "n", "secrets/s") // not in system:nodes
	if len(n.parts[0].known) != 0 {
		t.Error("somebody else's request has made the graph")
	}
	ask(t, n, kubelet("n1"), "get", "n", "secrets/s")
	if len(n.parts[0].known) != 1 {
		t.Error("a node's request has not made the graph")
	}
}

// Only changes of a pod that can change the graph are decoded.
func TestSamePod(t *testing.T) {
	store := openStore(t)
	entry := func(p *corev1.Pod) *sqlstore.Entry {
		put(t, store, podPrefix, p)
		return store.Get(podPrefix + "n/p")
	}
	claims := func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}} }
	extended := func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
	}
	before := entry(podOn("n1", "p", "s"))
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"status", podOn("n1", "p", "s", func(p *corev1.Pod) { p.Status.Phase = "Running" }), true},
		{"labels", podOn("n1", "p", "s", func(p *corev1.Pod) { p.Labels = map[string]string{"spec": "x"} }), true},
		{"an annotation that looks like a spec", podOn("n1", "p", "s", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": `"spec":{"x":1}`} }), true},
		{"secret", podOn("n1", "p", "t"), false},
		{"node", podOn("n2", "p", "s"), false},
		{"claims", podOn("n1", "p", "s", claims), false},
		{"claims of extended resources", podOn("n1", "p", "s", extended), false},
	} {
		if got := samePod(before, entry(tt.pod)); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
