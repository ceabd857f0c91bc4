package operator_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/operator"
	"github.com/plinth-io/plinth/server/servertest"
)

func TestGreeting(t *testing.T) {
	srv := servertest.Start(t)
	client := kubernetes.NewForConfigOrDie(srv.Config)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx, srv.Config) }()

	watch, err := client.CoreV1().ConfigMaps("guests").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "guests", Labels: map[string]string{"greet": "Ada"}}}
	if ns, err = client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Hello, Ada!", "Hello, Grace!"} {
		event := <-watch.ResultChan()
		if cm, ok := event.Object.(*corev1.ConfigMap); !ok || cm.Data["text"] != want {
			t.Fatalf("got %v, want %q", event.Object, want)
		}
		ns.Labels["greet"] = "Grace"
		if ns, err = client.CoreV1().Namespaces().Update(ctx, ns, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
