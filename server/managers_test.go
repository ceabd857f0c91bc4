package server

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// What plinth makes itself says so, as kube-apiserver's objects do.
func TestPlinthManagesWhatItMakes(t *testing.T) {
	s := start(t, Config{})
	client := kubernetes.NewForConfigOrDie(s.InProcess(nil))
	namespaces, err1 := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	classes, err2 := client.SchedulingV1().PriorityClasses().List(t.Context(), metav1.ListOptions{})
	service, err3 := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	objects := []metav1.Object{service}
	for i := range namespaces.Items {
		objects = append(objects, &namespaces.Items[i])
	}
	for i := range classes.Items {
		objects = append(objects, &classes.Items[i])
	}
	if len(objects) < 7 {
		t.Errorf("only %d objects", len(objects))
	}
	for _, o := range objects {
		var managers []string
		for _, entry := range o.GetManagedFields() {
			managers = append(managers, entry.Manager)
		}
		if got := strings.Join(managers, " "); got != "plinth" {
			t.Errorf("%s is managed by %q", o.GetName(), got)
		}
	}
}
