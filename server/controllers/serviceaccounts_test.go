package controllers_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/apitest"
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
