package admission_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
)

// withGPUs is a server whose namespace default has a quota of three devices.
func withGPUs(t *testing.T) kubernetes.Interface {
	t.Helper()
	srv := server.New(server.Config{Controllers: []string{}, DisableAdmissionPlugins: []string{"ServiceAccount"}})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	client := apitest.Typed(t, srv)
	quotas := client.CoreV1().ResourceQuotas("default")
	three := corev1.ResourceList{"requests.example.com/gpu": resource.MustParse("3")}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: three}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// There is no controller that counts.
	quota.Status = corev1.ResourceQuotaStatus{Hard: three, Used: corev1.ResourceList{"requests.example.com/gpu": resource.MustParse("0")}}
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client
}

// A quota of an extended resource bounds claims of the device class that has it, from the moment in which the class has it.
// https://kubernetes.io/docs/concepts/policy/resource-quotas/
func TestQuotaOfDevices(t *testing.T) {
	client := withGPUs(t)
	if err := claim(t, client, "before", 9); err != nil {
		t.Errorf("a claim while no class has the resource: %v", err)
	}
	class := makeClass(t, client)
	if err := claim(t, client, "many", 4); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: gpus, requested: requests.example.com/gpu=4, used: requests.example.com/gpu=0, limited: requests.example.com/gpu=3") {
		t.Errorf("a claim of more than the quota: %v", err)
	}
	if err := claim(t, client, "few", 2); err != nil {
		t.Errorf("a claim of less than the quota: %v", err)
	}
	if err := claim(t, client, "more", 2); !apierrors.IsForbidden(err) {
		t.Errorf("a claim of more than what is left: %v", err)
	}
	class.Spec.ExtendedResourceName = ptr.To("example.com/other")
	if _, err := client.ResourceV1().DeviceClasses().Update(t.Context(), class, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := claim(t, client, "after", 9); err != nil {
		t.Errorf("a claim when the class has another resource: %v", err)
	}
}

// The devices of a pod count once: the claim that is made for the pod does not count, another one that says so does.
func TestQuotaOfPodsDevices(t *testing.T) {
	client := withGPUs(t)
	makeClass(t, client)
	two := corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: two, Limits: two}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ofPod := func(c *resourcev1.ResourceClaim) {
		c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}
	}
	if err := claim(t, client, "a", 2, ofPod); err != nil {
		t.Errorf("the claim of the pod: %v", err)
	}
	if err := claim(t, client, "b", 2, ofPod); !apierrors.IsForbidden(err) {
		t.Errorf("another claim of the pod: %v", err)
	}
	if err := claim(t, client, "c", 2); !apierrors.IsForbidden(err) {
		t.Errorf("the claim of nobody: %v", err)
	}
}

func makeClass(t *testing.T, client kubernetes.Interface) *resourcev1.DeviceClass {
	t.Helper()
	class, err := client.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/gpu")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return class
}

// claim asks for so many devices of the class gpu.
func claim(t *testing.T, client kubernetes.Interface, name string, count int64, change ...func(*resourcev1.ResourceClaim)) error {
	t.Helper()
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
		}}}},
	}
	for _, f := range change {
		f(c)
	}
	_, err := client.ResourceV1().ResourceClaims("default").Create(t.Context(), c, metav1.CreateOptions{})
	return err
}
