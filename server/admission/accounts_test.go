package admission_test

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestAccountThatComes has the account of a namespace made while a pod waits for it. The
// plugin's client reaches nobody, so that it would be an error if the plugin asked.
func TestAccountThatComes(t *testing.T) {
	t.Cleanup(admission.SetAccountPatience(time.Minute))
	o := pluginOptions(t)
	putNamespace(t, o.Store, "new", "Active")
	plugins, err := admission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() {
		time.Sleep(20 * time.Millisecond)
		account := `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default","namespace":"new"}}`
		_, err := o.Store.Commit(t.Context(), sqlstore.Change{Key: "/registry/core/serviceaccounts/new/default", Value: []byte(account)})
		if err != nil {
			t.Error(err)
		}
	})
	pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{Name: "c"}}}}
	a := apiadmission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "new", "p",
		corev1.SchemeGroupVersion.WithResource("pods"), "", apiadmission.Create, nil, false, nil)
	if err := plugins.Admit(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.ServiceAccountName != "default" || len(pod.Spec.Volumes) != 1 {
		t.Errorf("account %q, volumes %v", pod.Spec.ServiceAccountName, pod.Spec.Volumes)
	}
}
