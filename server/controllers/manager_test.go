package controllers_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserviceaccount "k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/servertest"
)

// The server itself runs the controllers, as clients of its transport in process.
func TestInsideServer(t *testing.T) {
	srv := servertest.Start(t, servertest.Options{Controllers: []string{"*"}})
	c := &fixture{&apitest.API{Client: kubernetes.NewForConfigOrDie(srv.Config)}}
	c.addNamespace(t, "a")
	a := c.add(t, "a", "a")
	c.add(t, "a", "b", ownedBy(a, true))
	c.remove(t, "a", "a", metav1.DeletePropagationForeground)
	c.gone(t, "a", "a", "b")
	apitest.Eventually(t, "the service account appears", func() bool {
		_, err := c.Client.CoreV1().ServiceAccounts("a").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	if err := c.Client.CoreV1().Namespaces().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the namespace is gone", func() bool {
		_, err := c.Client.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// A controller that is off does nothing: the garbage stays. The deletion of a namespace, by a
// controller that is on, shows that there was time enough to collect the garbage.
func TestControllersOff(t *testing.T) {
	c := openRunning(t, "*", "-garbagecollector")
	a := c.add(t, "default", "a")
	c.add(t, "default", "b", ownedBy(a, false))
	c.remove(t, "default", "a", metav1.DeletePropagationBackground)
	c.addNamespace(t, "n")
	if err := c.Client.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the namespace is gone", func() bool {
		_, err := c.Client.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if c.get(t, "default", "b") == nil {
		t.Error("garbage was collected")
	}
}

func TestControllersSwitch(t *testing.T) {
	rest := []string{"serviceaccount-token", "root-ca-cert-publisher", "resourcequota", "clusterrole-aggregation", "ttl-after-finished", "pvc-protection", "pv-protection", "volumeattributesclass-protection", "validatingadmissionpolicy-status", "svm"}
	with := func(names ...string) []string { return append(names, rest...) }
	all := with("namespace", "garbagecollector", "serviceaccount")
	for _, c := range []struct{ list, want []string }{
		{nil, all},
		{[]string{}, nil},
		{[]string{"*"}, all},
		{[]string{"none"}, nil},
		{[]string{"namespace"}, []string{"namespace"}},
		{[]string{"*", "-namespace"}, with("garbagecollector", "serviceaccount")},
		{[]string{"-garbage-collector-controller", "*"}, with("namespace", "serviceaccount")},
		{[]string{"*", "-serviceaccount-token-controller"}, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "serviceaccount-token" })},
		{[]string{"*", "podgc"}, append(all, "podgc")}, // podgc is off unless it is named
	} {
		if diff := cmp.Diff(c.want, controllers.Chosen(c.list)); diff != "" {
			t.Errorf("%q: %s", c.list, diff)
		}
	}
}

// No goroutine of the controllers is left when they have stopped.
func TestRunLeavesNothing(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	transport := c.Config.Transport.(interface{ CloseIdleConnections() })
	count := func() int {
		transport.CloseIdleConnections()
		return runtime.NumGoroutine()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		t.Fatal(err)
	}
	// The first run starts the goroutines that a process has once and for ever.
	work := func() {
		stop := run(t, c, controllers.Config{Credentials: controllers.Credentials{Tokens: signer}})
		a := c.add(t, "default", "a")
		c.add(t, "default", "b", ownedBy(a, false))
		c.remove(t, "default", "a", metav1.DeletePropagationBackground)
		c.gone(t, "default", "b")
		stop()
	}
	work()
	time.Sleep(100 * time.Millisecond)
	before := count()
	for range 3 {
		work()
	}
	apitest.Eventually(t, "goroutines end", func() bool { return count() <= before })
}

// Check refuses lists that contradict themselves.
func TestCheckContradictions(t *testing.T) {
	for _, tt := range []struct {
		list []string
		want string
	}{
		{[]string{"none", "namespace"}, "none turns all controllers off and stands alone"},
		{[]string{"*", "none"}, "none turns all controllers off and stands alone"},
		{[]string{"*", "podgc", "-podgc"}, "controller podgc is both turned on and turned off; write podgc or -podgc"},
		{[]string{"serviceaccount-controller", "-serviceaccount"}, "controller serviceaccount is both turned on and turned off"},
	} {
		if err := controllers.Check(tt.list); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %s", tt.list, err, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, good := range [][]string{nil, {}, {"*"}, {"none"}, {"*", "-namespace"}, {"garbage-collector-controller"}, {"garbagecollector"}} {
		if err := controllers.Check(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"deployment", "", "-", "-*"} {
		err := controllers.Check([]string{bad})
		if err == nil || !strings.Contains(err.Error(), "write *, none, or names out of namespace, garbagecollector, serviceaccount") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// Upstream's bootstrap bindings give each controller's account its rights.
func TestAccounts(t *testing.T) {
	bound := map[string]bool{}
	for _, b := range bootstrappolicy.ControllerRoleBindings() {
		for _, s := range b.Subjects {
			bound[apiserviceaccount.MakeUsername(s.Namespace, s.Name)] = true
		}
	}
	accounts := controllers.Accounts()
	if len(accounts) < 10 {
		t.Errorf("only %v", accounts)
	}
	for name, who := range accounts {
		if !bound[who.GetName()] {
			t.Errorf("%s: nothing is bound to %s", name, who.GetName())
		}
	}
}
