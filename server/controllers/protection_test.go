package controllers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
)

// TestProtection deletes three claims and two volumes: a claim that a pod uses, a claim of the
// pod's own ephemeral volume, a claim that no pod uses, a bound volume and an unbound one. Those
// in use stay until the pod is gone.
func TestProtection(t *testing.T) {
	c := openRunning(t, "pvc-protection", "persistentvolume-protection-controller")
	ctx, core := t.Context(), c.Client.CoreV1()
	sizes := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	for _, name := range []string{"used", "free"} {
		_, err := core.PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"kubernetes.io/pvc-protection"}},
			Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: sizes}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pv, err := core.PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"kubernetes.io/pv-protection"}},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: modes, Capacity: sizes,
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			pv.Status.Phase = corev1.VolumeBound
			if _, err := core.PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	claimed := corev1.PersistentVolumeClaimSpec{AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: sizes}}
	pod, err := core.Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{
			NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{
				{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "used"}}},
				{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimed}}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = core.PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p-own", Finalizers: []string{"kubernetes.io/pvc-protection"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: claimed,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"used", "p-own", "free"} {
		if err := core.PersistentVolumeClaims("default").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"used", "free"} {
		if err := core.PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(name string) error {
		_, err := core.PersistentVolumeClaims("default").Get(ctx, name, metav1.GetOptions{})
		return err
	}
	volume := func(name string) error {
		_, err := core.PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		return err
	}
	gone := func(what string, get func(string) error, name string) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !apierrors.IsNotFound(get(name)); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s %s is still there", what, name)
			}
		}
	}
	gone("claim", claim, "free")
	gone("volume", volume, "free")
	for _, name := range []string{"used", "p-own"} {
		if err := claim(name); err != nil {
			t.Errorf("a claim that a pod uses: %v", err)
		}
	}
	if err := volume("used"); err != nil {
		t.Errorf("a volume that is bound: %v", err)
	}
	if err := core.Pods("default").Delete(ctx, "p", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	gone("claim", claim, "used")
	gone("claim", claim, "p-own")
}

// TestUnusedClaims has pods come, end and go that use bound claims. The condition Unused says whether there is such
// a pod. A claim that is not bound has none.
func TestUnusedClaims(t *testing.T) {
	c := openRunning(t, "pvc-protection")
	ctx, core := t.Context(), c.Client.CoreV1()
	sizes := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claims := core.PersistentVolumeClaims("default")
	for _, name := range []string{"used", "pending"} {
		claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"kubernetes.io/pvc-protection"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: sizes},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			claim.Status.Phase = corev1.ClaimBound
			if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	conditions := func(name string) (list []string) {
		t.Helper()
		claim, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claim.Status.Conditions {
			list = append(list, fmt.Sprint(c.Type, "=", c.Status, " ", c.Reason))
		}
		return list
	}
	unused := func(when, want string) {
		t.Helper()
		apitest.Eventually(t, when+": "+want, func() bool { return slices.Equal(conditions("used"), []string{want}) })
	}
	const yes, no = "Unused=True NoPodsUsingPVC", "Unused=False PodUsingPVC"
	pod := func(name string) *corev1.Pod {
		t.Helper()
		pod, err := core.Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "i"}},
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "used"},
				}}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod
	}
	unused("a claim that became bound", yes)
	ends := pod("ends")
	unused("a pod came", no)
	ends.Status.Phase = corev1.PodSucceeded
	if _, err := core.Pods("default").UpdateStatus(ctx, ends, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	unused("the pod has ended", yes)
	pod("goes")
	unused("another pod came", no)
	if err := core.Pods("default").Delete(ctx, "goes", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	unused("the other pod is gone", yes)
	if got := conditions("pending"); len(got) > 0 {
		t.Errorf("a claim that is not bound has %v", got)
	}
}

// TestVolumeClassProtection deletes classes of volumes. One that a claim names stays until the claim is gone.
func TestVolumeClassProtection(t *testing.T) {
	c := openRunning(t, "volumeattributesclass-protection")
	ctx, core, classes := t.Context(), c.Client.CoreV1(), c.Client.StorageV1().VolumeAttributesClasses()
	gold := "gold"
	_, err := core.PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeAttributesClassName: &gold,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{gold, "silver"} {
		_, err := classes.Create(ctx, &storagev1.VolumeAttributesClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"kubernetes.io/vac-protection"}},
			DriverName: "example.com", Parameters: map[string]string{"a": "b"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := classes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(name string) {
		t.Helper()
		apitest.Eventually(t, "the class "+name+" is gone", func() bool {
			_, err := classes.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	gone("silver")
	if _, err := classes.Get(ctx, gold, metav1.GetOptions{}); err != nil {
		t.Errorf("a class that a claim names: %v", err)
	}
	if err := core.PersistentVolumeClaims("default").Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(gold)
}

// BenchmarkProtection deletes n claims in a namespace with n pods. The pods name the claims and
// are not scheduled, so the claims are not in use.
func BenchmarkProtection(b *testing.B) {
	const n = 300
	for b.Loop() {
		b.StopTimer()
		c := openRunning(b, "pvc-protection")
		ctx, core := b.Context(), c.Client.CoreV1()
		for i := range n {
			name := fmt.Sprint("x", i)
			_, err := core.PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"kubernetes.io/pvc-protection"}},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				b.Fatal(err)
			}
			_, err = core.Pods("default").Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "i"}}, // without a node, so the claim is not in use
					Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
					}}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := core.PersistentVolumeClaims("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		for {
			list, err := core.PersistentVolumeClaims("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				b.Fatal(err)
			}
			if len(list.Items) == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
