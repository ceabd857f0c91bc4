package admission_test

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
)

// TestRemovedGroup writes by way of extensions/v1beta1 what is in apps and networking.k8s.io
// today: a default, a warning and a quota count there, too.
func TestRemovedGroup(t *testing.T) {
	srv := server.New(server.Config{ServeRemovedAPIs: []string{"extensions/v1beta1"}, Controllers: []string{}})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	config, heard := srv.RESTConfig(), &warnings{}
	config.WarningHandler = heard
	client, ctx := kubernetes.NewForConfigOrDie(config), t.Context()

	_, err := client.NetworkingV1().IngressClasses().Create(ctx, &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "usual", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.com/ingress"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ExtensionsV1beta1().Ingresses("default").Create(ctx, &extensionsv1beta1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       extensionsv1beta1.IngressSpec{Rules: []extensionsv1beta1.IngressRule{{Host: "example.com"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ingress, err := client.NetworkingV1().Ingresses("default").Get(ctx, "web", metav1.GetOptions{})
	if err != nil || ingress.Spec.IngressClassName == nil || *ingress.Spec.IngressClassName != "usual" {
		t.Errorf("ingress class: %v, %v", ingress.Spec.IngressClassName, err)
	}

	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "hard", Labels: map[string]string{"pod-security.kubernetes.io/warn": "restricted"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const name = "count/deployments.apps"
	quota, err := client.CoreV1().ResourceQuotas("hard").Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{name: resource.MustParse("0")}}
	if _, err := client.CoreV1().ResourceQuotas("hard").UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	create := func(name string) error {
		_, err := client.ExtensionsV1beta1().Deployments("hard").Create(ctx, &extensionsv1beta1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: extensionsv1beta1.DeploymentSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}},
		}, metav1.CreateOptions{})
		return err
	}
	if err := create("a"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(heard.all(), `would violate PodSecurity "restricted:latest"`) {
		t.Errorf("warnings: %s", heard.all())
	}
	if err := create("b"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: one") {
		t.Errorf("a second deployment: %v", err)
	}
}

// warnings are those that a client has heard.
type warnings struct {
	mu   sync.Mutex
	text []string
}

var _ clientrest.WarningHandler = &warnings{}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.text, "\n")
}
