package admission_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/server/servertest"
)

// TestEventRateLimit sends more than the one event in a second that the configuration
// allows; even a slow machine does not take a hundred seconds for a hundred.
func TestEventRateLimit(t *testing.T) {
	srv := servertest.Start(t, servertest.Options{
		EnableAdmissionPlugins: []string{"EventRateLimit"}, AdmissionConfigFile: "testdata/recorded/config.yaml",
	})
	events := kubernetes.NewForConfigOrDie(srv.Config).CoreV1().Events("default")
	for i := range 100 {
		_, err := events.Create(t.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprint("e", i)},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
		}, metav1.CreateOptions{})
		if apierrors.IsTooManyRequests(err) && i >= 2 {
			return
		} else if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	t.Error("a hundred events were taken")
}
