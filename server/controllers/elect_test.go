package controllers_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
)

// Of two servers one runs the controllers. When that server stops, the other one takes over at
// once.
func TestElection(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	logs := map[string]*apitest.Lines{"one": {}, "two": {}}
	shared := func(identity string) controllers.Config {
		return controllers.Config{Controllers: []string{"serviceaccount"}, Identity: identity, Log: logs[identity].Log()}
	}
	holder := func() string {
		lease, err := c.Client.CoordinationV1().Leases("kube-system").Get(t.Context(), "plinth-controllers", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	stop := run(t, c, shared("one"))
	apitest.Eventually(t, "the first is elected", func() bool { return holder() == "one" })
	run(t, c, shared("two"))
	apitest.Eventually(t, "the second knows of the first", func() bool { return logs["two"].Count(`msg="another server runs the controllers" identity=one`) == 1 })
	stop()
	if logs["one"].Count(`msg="this server runs the controllers" controllers=1`) != 1 || logs["one"].Count(`msg="this server runs the controllers no more"`) != 1 {
		t.Errorf("the first logged\n%s", logs["one"].All())
	}
	if h := holder(); h == "one" {
		t.Error("the lease was not given back")
	}
	apitest.Eventually(t, "the second is elected", func() bool { return holder() == "two" })
	c.addNamespace(t, "a")
	apitest.Eventually(t, "the second works", func() bool {
		_, err := c.Client.CoreV1().ServiceAccounts("a").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	if logs["two"].Count(`msg="this server runs the controllers" controllers=1`) != 1 {
		t.Errorf("the second logged\n%s", logs["two"].All())
	}
}
