package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/sqlstore"
)

// BenchmarkPlugins is both passes over all plugins that run by default, with no webhooks,
// quotas or limits. That of ConfigMaps is what all writes pay.
func BenchmarkPlugins(b *testing.B) {
	o := pluginOptions(b)
	putNamespace(b, o.Store, "default", "Active")
	account := `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default","namespace":"default"}}`
	if _, err := o.Store.Commit(b.Context(), sqlstore.Change{Key: "/registry/core/serviceaccounts/default/default", Value: []byte(account)}); err != nil {
		b.Fatal(err)
	}
	plugins, err := admission.New(o)
	if err != nil {
		b.Fatal(err)
	}
	lifecycle := admission.Chain{admission.NewLifecycle(o.Store)}
	pods, pod := corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod")
	newPod := func() runtime.Object {
		return &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}}}
	}
	for _, c := range []struct {
		name  string
		asked interface {
			apiadmission.MutationInterface
			apiadmission.ValidationInterface
		}
		a func() apiadmission.Attributes
	}{
		{"lifecycle alone", lifecycle, func() apiadmission.Attributes {
			return attributes(apiadmission.Create, configMap, configMaps, "default", "a")
		}},
		{"configmap", plugins, func() apiadmission.Attributes {
			return attributes(apiadmission.Create, configMap, configMaps, "default", "a")
		}},
		{"pod", plugins, func() apiadmission.Attributes {
			return apiadmission.NewAttributesRecord(newPod(), nil, pod, "default", "p", pods, "", apiadmission.Create, nil, false, &user.DefaultInfo{Name: "ann"})
		}},
		{"status of a pod", plugins, func() apiadmission.Attributes {
			return apiadmission.NewAttributesRecord(newPod(), newPod(), pod, "default", "p", pods, "status", apiadmission.Update, nil, false, &user.DefaultInfo{Name: "ann"})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a := c.a()
				if err := c.asked.Admit(b.Context(), a, nil); err != nil {
					b.Fatal(err)
				}
				if err := c.asked.Validate(b.Context(), a, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
