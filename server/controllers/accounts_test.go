package controllers_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
)

func TestDefaultServiceAccount(t *testing.T) {
	c := openRunning(t, "serviceaccount")
	c.addNamespace(t, "a")
	accounts := c.Client.CoreV1().ServiceAccounts("a")
	var first types.UID
	apitest.Eventually(t, "the account appears", func() bool {
		sa, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		first = sa.UID
		return err == nil
	})
	if err := accounts.Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the account reappears", func() bool {
		sa, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil && sa.UID != first
	})
}

const rootCAName = "kube-root-ca.crt"

// Every namespace has a ConfigMap with the root certificate. The ConfigMap is restored when it is
// changed or deleted, and does not keep a namespace from being deleted.
func TestRootCA(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	run(t, c, controllers.Config{Credentials: controllers.Credentials{RootCA: []byte("PEM")}, Controllers: []string{"root-ca-cert-publisher", "namespace"}})
	c.addNamespace(t, "late")
	published := func(namespace string) bool {
		cm := c.get(t, namespace, rootCAName)
		return cm != nil && cm.Data["ca.crt"] == "PEM"
	}
	for _, namespace := range []string{"default", "kube-system", "late"} {
		apitest.Eventually(t, "published in "+namespace, func() bool { return published(namespace) })
	}
	patch := []byte(`{"data":{"ca.crt":"other"}}`)
	if _, err := c.Client.CoreV1().ConfigMaps("late").Patch(t.Context(), rootCAName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the changed ConfigMap is restored", func() bool { return published("late") })
	c.remove(t, "late", rootCAName, metav1.DeletePropagationBackground)
	apitest.Eventually(t, "the deleted ConfigMap is restored", func() bool { return published("late") })
	if err := c.Client.CoreV1().Namespaces().Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the namespace is gone", func() bool {
		_, err := c.Client.CoreV1().Namespaces().Get(t.Context(), "late", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
