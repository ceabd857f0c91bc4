package server

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
)

func TestInProcess(t *testing.T) {
	s := start(t, Config{})
	client := kubernetes.NewForConfigOrDie(s.InProcess(nil))
	maps := client.CoreV1().ConfigMaps("default")
	ctx, cancel := context.WithCancel(t.Context())
	w, err := maps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		event := <-w.ResultChan()
		if got := event.Object.(*corev1.ConfigMap).Name; event.Type != "ADDED" || got != name {
			t.Errorf("event %s %s, want %s", event.Type, got, name)
		}
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("list: %v, %v", list, err)
	}
	review, err := client.AuthenticationV1().RESTClient().Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		Body([]byte(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)).DoRaw(ctx)
	if err != nil || !strings.Contains(string(review), user.APIServerUser) {
		t.Errorf("who am I: %s, %v", review, err)
	}
	cancel()
	for range w.ResultChan() {
	}
	for s.guard.Running() != 0 { // the handler has noticed
		time.Sleep(time.Millisecond)
	}
}

// Somebody else's rights hold in process too.
func TestInProcessUser(t *testing.T) {
	s := start(t, Config{})
	ada := &user.DefaultInfo{Name: "ada", Groups: []string{user.AllAuthenticated}}
	_, err := kubernetes.NewForConfigOrDie(s.InProcess(ada)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), `User "ada" cannot list resource "pods"`) {
		t.Errorf("error %v", err)
	}
}
