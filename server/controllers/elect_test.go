package controllers_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		return controllers.Config{Controllers: []string{"serviceaccount"}, Identity: identity, Logger: logs[identity].Log()}
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
	// It holds the lease a moment before it knows.
	apitest.Eventually(t, "the first works", func() bool { return logs["one"].Count(`msg="this server runs the controllers" controllers=1`) == 1 })
	run(t, c, shared("two"))
	apitest.Eventually(t, "the second knows of the first", func() bool { return logs["two"].Count(`msg="another server runs the controllers" identity=one`) == 1 })
	stop()
	if logs["one"].Count(`msg="this server runs the controllers no more"`) != 1 {
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

// A server that sees that another one has taken its lease, as after it was stopped for longer than that
// lasts, ends its controllers, and is elected again when the lease is free.
func TestElectionLost(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	log := &apitest.Lines{}
	run(t, c, controllers.Config{Controllers: []string{"serviceaccount"}, Identity: "one", Logger: log.Log()})
	leases := c.Client.CoordinationV1().Leases("kube-system")
	give := func(holder string) {
		for {
			lease, err := leases.Get(t.Context(), "plinth-controllers", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lease.Spec.HolderIdentity = &holder
			if _, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err == nil {
				return
			} else if !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
		}
	}
	const runs, ended = `msg="this server runs the controllers" controllers=1`, `msg="this server runs the controllers no more"`
	apitest.Eventually(t, "the server is elected", func() bool { return log.Count(runs) == 1 })
	give("thief")
	apitest.Eventually(t, "the server has noticed", func() bool { return log.Count(ended) == 1 })
	give("")
	apitest.Eventually(t, "the server is elected again", func() bool { return log.Count(runs) == 2 })
	c.addNamespace(t, "a")
	apitest.Eventually(t, "the server works", func() bool {
		_, err := c.Client.CoreV1().ServiceAccounts("a").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
}
