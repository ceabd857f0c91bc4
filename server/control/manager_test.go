package control_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/control"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/servertest"
)

// run starts controllers on a bootstrapped cluster and returns what stops them.
func run(t testing.TB, c *cluster, config control.Config) (stop func()) {
	t.Helper()
	config.Client, config.Store, config.Kinds, config.Logf = c.config, c.store, c.kinds, t.Logf
	m, err := control.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func openRunning(t testing.TB, controllers ...string) *cluster {
	t.Helper()
	c := openCluster(t)
	bootstrap(t, c, here)
	run(t, c, control.Config{Controllers: controllers})
	return c
}

// add creates a ConfigMap that belongs to owners.
func (c *cluster) add(t testing.TB, namespace, name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
	cm, err := c.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func (c *cluster) addNamespace(t testing.TB, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) remove(t testing.TB, namespace, name string, policy metav1.DeletionPropagation) {
	t.Helper()
	err := c.client.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) get(t testing.TB, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	cm, err := c.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return cm
}

func (c *cluster) gone(t testing.TB, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, name+" is gone", func() bool { return c.get(t, namespace, name) == nil })
	}
}

func (c *cluster) setFinalizers(t testing.TB, namespace, name, list string) {
	t.Helper()
	patch := []byte(`{"metadata":{"finalizers":` + list + `}}`)
	if _, err := c.client.CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func ownedBy(owner *corev1.ConfigMap, blocks bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocks}
}

// collectorKnows returns when the garbage collector has taken in all ConfigMaps so far, as
// it would at the pace of people: it takes them in order, so the deletion of one more
// pair shows it.
func (c *cluster) collectorKnows(t *testing.T) {
	t.Helper()
	x := c.add(t, "default", "x")
	c.add(t, "default", "y", ownedBy(x, false))
	c.remove(t, "default", "x", metav1.DeletePropagationBackground)
	c.gone(t, "default", "x", "y")
}

func TestBackgroundDeletion(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	b := c.add(t, "default", "b", ownedBy(a, false))
	c.add(t, "default", "c", ownedBy(b, true))
	c.add(t, "default", "other")
	c.remove(t, "default", "a", metav1.DeletePropagationBackground)
	c.gone(t, "default", "a", "b", "c")
	if c.get(t, "default", "other") == nil {
		t.Error("an object without owners is gone")
	}
}

// The owner stays, marked, until the dependents that block it are gone.
func TestForegroundDeletion(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	c.add(t, "default", "blocking", ownedBy(a, true))
	c.add(t, "default", "free", ownedBy(a, false))
	c.setFinalizers(t, "default", "blocking", `["example.com/hold"]`)
	c.collectorKnows(t)
	c.remove(t, "default", "a", metav1.DeletePropagationForeground)
	c.gone(t, "default", "free")
	eventually(t, "blocking is being deleted", func() bool { return c.get(t, "default", "blocking").DeletionTimestamp != nil })
	if owner := c.get(t, "default", "a"); owner == nil || owner.DeletionTimestamp == nil {
		t.Fatalf("owner is %v while a dependent blocks it", owner)
	}
	c.setFinalizers(t, "default", "blocking", "null")
	c.gone(t, "default", "blocking", "a")
}

func TestOrphanDeletion(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	c.add(t, "default", "b", ownedBy(a, true))
	c.collectorKnows(t)
	c.remove(t, "default", "a", metav1.DeletePropagationOrphan)
	c.gone(t, "default", "a")
	if b := c.get(t, "default", "b"); b == nil || len(b.OwnerReferences) != 0 {
		t.Errorf("orphan is %v", b)
	}
}

// An owner that never was, or was another object of that name, counts as deleted; one of
// several owners is enough to live.
func TestAbsentOwner(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	never := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "00000000-0000-0000-0000-000000000001"}
	another := ownedBy(a, false)
	another.UID = "00000000-0000-0000-0000-000000000002"
	c.add(t, "default", "child", never)
	c.add(t, "default", "mistaken", another)
	c.add(t, "default", "half", never, ownedBy(a, false))
	c.gone(t, "default", "child", "mistaken")
	eventually(t, "the absent owner's reference is dropped", func() bool {
		half := c.get(t, "default", "half")
		return half != nil && len(half.OwnerReferences) == 1 && half.OwnerReferences[0].UID == a.UID
	})
}

// What happened while no collector ran is made good.
func TestCollectorStartsLater(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	a := c.add(t, "default", "a")
	c.add(t, "default", "b", ownedBy(a, true))
	c.remove(t, "default", "a", metav1.DeletePropagationBackground)
	d := c.add(t, "default", "d")
	c.add(t, "default", "e", ownedBy(d, true))
	c.remove(t, "default", "d", metav1.DeletePropagationForeground)
	f := c.add(t, "default", "f")
	g := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "g", OwnerReferences: []metav1.OwnerReference{ownedBy(f, true)}}}
	secrets := c.client.CoreV1().Secrets("default")
	if _, err := secrets.Create(t.Context(), g, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.remove(t, "default", "f", metav1.DeletePropagationOrphan)
	run(t, c, control.Config{Controllers: []string{"garbagecollector"}})
	c.gone(t, "default", "b", "d", "e", "f")
	if g, err := secrets.Get(t.Context(), "g", metav1.GetOptions{}); err != nil || len(g.OwnerReferences) != 0 {
		t.Errorf("orphan is %v, error %v", g, err)
	}
}

// The collector follows kinds that come and go while it runs.
func TestCollectorNoticesKinds(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	secrets := c.kinds.Lookup("", "v1", "secrets")
	c.kinds.Replace([]*kind.Kind{secrets}, nil)
	run(t, c, control.Config{Controllers: []string{"garbagecollector"}})
	c.collectorKnows(t)
	for _, name := range []string{"first", "again"} {
		c.kinds.Replace(nil, []*kind.Kind{secrets})
		owner := c.add(t, "default", name)
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{ownedBy(owner, false)}}}
		if _, err := c.client.CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.remove(t, "default", name, metav1.DeletePropagationBackground)
		eventually(t, "the secret is gone", func() bool {
			_, err := c.client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
			return errors.IsNotFound(err)
		})
		c.kinds.Replace([]*kind.Kind{secrets}, nil)
	}
}

// The same controllers as the server itself runs them, on its transport in process.
func TestInsideServer(t *testing.T) {
	srv := servertest.Start(t, servertest.Options{Controllers: []string{"*"}})
	c := &cluster{client: kubernetes.NewForConfigOrDie(srv.Config)}
	c.addNamespace(t, "a")
	a := c.add(t, "a", "a")
	c.add(t, "a", "b", ownedBy(a, true))
	c.remove(t, "a", "a", metav1.DeletePropagationForeground)
	c.gone(t, "a", "a", "b")
	eventually(t, "the service account appears", func() bool {
		_, err := c.client.CoreV1().ServiceAccounts("a").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool {
		_, err := c.client.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}

func TestNamespaceDeletion(t *testing.T) {
	c := openRunning(t)
	c.addNamespace(t, "a")
	c.add(t, "a", "plain")
	c.add(t, "a", "held")
	c.setFinalizers(t, "a", "held", `["example.com/hold"]`)
	for _, name := range []string{"s1", "s2", "s3"} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.client.CoreV1().Secrets("a").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := c.client.CoreV1().Pods("a").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.add(t, "default", "elsewhere")

	namespaces := c.client.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.gone(t, "a", "plain")
	eventually(t, "the status says what remains", func() bool {
		ns, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || ns.Status.Phase != corev1.NamespaceTerminating {
			t.Fatalf("namespace with a finalizer in it: %v, error %v", ns, err)
		}
		for _, condition := range ns.Status.Conditions {
			if condition.Type == corev1.NamespaceFinalizersRemaining {
				return strings.Contains(condition.Message, "example.com/hold")
			}
		}
		return false
	})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	if _, err := c.client.CoreV1().ConfigMaps("a").Create(t.Context(), cm, metav1.CreateOptions{}); !errors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create in a terminating namespace: %v", err)
	}
	c.setFinalizers(t, "a", "held", "null")
	eventually(t, "the namespace is gone", func() bool {
		_, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
	if c.get(t, "default", "elsewhere") == nil {
		t.Error("an object of another namespace is gone")
	}
}

func TestDefaultServiceAccount(t *testing.T) {
	c := openRunning(t, "serviceaccount")
	c.addNamespace(t, "a")
	accounts := c.client.CoreV1().ServiceAccounts("a")
	var first types.UID
	eventually(t, "the account appears", func() bool {
		sa, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		first = sa.UID
		return err == nil
	})
	if err := accounts.Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the account reappears", func() bool {
		sa, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil && sa.UID != first
	})
}

// A controller that is off leaves things alone. One that is on shows that time enough
// has passed.
func TestControllersOff(t *testing.T) {
	c := openRunning(t, "*", "-garbagecollector")
	a := c.add(t, "default", "a")
	c.add(t, "default", "b", ownedBy(a, false))
	c.remove(t, "default", "a", metav1.DeletePropagationBackground)
	c.addNamespace(t, "n")
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool {
		_, err := c.client.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
	if c.get(t, "default", "b") == nil {
		t.Error("garbage was collected")
	}
}

// One of two servers runs controllers, and the other takes over at once when it stops.
func TestElection(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	shared := func(identity string) control.Config {
		return control.Config{Controllers: []string{"serviceaccount"}, Shared: true, Identity: identity}
	}
	holder := func() string {
		lease, err := c.client.CoordinationV1().Leases("kube-system").Get(t.Context(), "plinth-controllers", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	stop := run(t, c, shared("one"))
	eventually(t, "the first is elected", func() bool { return holder() == "one" })
	run(t, c, shared("two"))
	stop()
	if h := holder(); h == "one" {
		t.Error("the lease was not given back")
	}
	eventually(t, "the second is elected", func() bool { return holder() == "two" })
	c.addNamespace(t, "a")
	eventually(t, "the second works", func() bool {
		_, err := c.client.CoreV1().ServiceAccounts("a").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
}

func TestControllersSwitch(t *testing.T) {
	rest := []string{"serviceaccount-token", "root-ca-cert-publisher", "resourcequota", "clusterrole-aggregation", "ttl-after-finished", "pvc-protection", "pv-protection"}
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
		{[]string{"*", "podgc"}, append(all, "podgc")}, // off unless it is named
		{[]string{"serviceaccount-controller", "-serviceaccount"}, []string{"serviceaccount"}},
	} {
		if diff := cmp.Diff(c.want, control.Enabled(c.list)); diff != "" {
			t.Errorf("%q: %s", c.list, diff)
		}
	}
}

// Nothing of the controllers is left when they have stopped.
func TestRunLeavesNothing(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	transport := c.config.Transport.(interface{ CloseIdleConnections() })
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
	// The first run starts what a process has only once.
	work := func() {
		stop := run(t, c, control.Config{AccountTokens: signer})
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
	eventually(t, "goroutines end", func() bool { return count() <= before })
}

func TestCheck(t *testing.T) {
	for _, good := range [][]string{nil, {}, {"*"}, {"none"}, {"*", "-namespace"}, {"garbage-collector-controller"}, {"garbagecollector"}} {
		if err := control.Check(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"deployment", "", "-", "-*"} {
		err := control.Check([]string{bad})
		if err == nil || !strings.Contains(err.Error(), "write *, none, or names out of namespace, garbagecollector, serviceaccount") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}
