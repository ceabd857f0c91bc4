package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/plinth-io/plinth/bench/torture"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// clusterKills says how often TestClusterTorture kills the plinth that runs the controllers.
const clusterKills = "PLINTH_TEST_CLUSTER_KILLS"

// TestClusterTorture kills the plinth that runs the controllers, again and again, while clients create, scale and delete
// Deployments. On servers there are two plinths, so that the other one takes over; on SQLite there is one. In the end each
// Deployment is as it was last acknowledged, and has exactly its pods.
func TestClusterTorture(t *testing.T) {
	needComponents(t)
	kills, err := strconv.Atoi(cmp.Or(os.Getenv(clusterKills), "5"))
	must(t, err)
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(tortureSeed), strconv.FormatInt(time.Now().Unix(), 10)), 10, 64)
	must(t, err)
	eachWanted(t, clusterVariable, func(t *testing.T, d logtest.Dialect) {
		t.Logf("%s=%d", tortureSeed, seed)
		g := newKilledGroup(t, d)
		var keepers []*keeper
		var working sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		t.Cleanup(func() { stop(); working.Wait() }) // before the plinths end
		for i := range 4 {
			k := newKeeper(i, rand.New(rand.NewPCG(seed, uint64(i))), g.deployments())
			keepers = append(keepers, k)
			working.Go(func() { k.work(ctx) })
		}
		for i := range kills {
			g.killLeader(t, i%2 == 1)
			g.expectControllers(t, fmt.Sprintf("after-%d", i+1))
		}
		stop()
		working.Wait()
		want := map[string]int32{}
		for _, k := range keepers {
			t.Logf("keeper %d: %d requests were acknowledged, %d refused as they had to be, %d had no answer", k.number, k.acknowledged, k.refused, k.unanswered)
			if k.err != nil {
				t.Error(k.err)
			}
			if k.acknowledged == 0 {
				t.Errorf("keeper %d has done nothing", k.number)
			}
			maps.Copy(want, k.settle(t))
		}
		g.expectPods(t, want)
	})
}

// killedGroup is the plinths on one database.
type killedGroup struct {
	dsn      string
	flags    []string
	replicas []*killedReplica
}

// killedReplica is a plinth that comes back at the same address when it was killed.
type killedReplica struct {
	*process
	since  int // length of its log when the process began
	client kubernetes.Interface
}

func newKilledGroup(t *testing.T, d logtest.Dialect) *killedGroup {
	g := &killedGroup{dsn: d.Fresh(t), flags: []string{"--cluster", "--simulate-nodes=3"}}
	dir := t.TempDir()
	names := []string{"a", "b"}
	if d.Name == "sqlite" {
		names = names[:1]
	}
	for i, name := range names {
		if i > 0 {
			must(t, torture.CopyAuthority(filepath.Join(dir, "a"), filepath.Join(dir, name)))
		}
		p := serveFor(t, filepath.Join(dir, name), g.dsn, g.flags...)
		config := p.config(t)
		config.Timeout = patience
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return onceOnly{rt} })
		g.replicas = append(g.replicas, &killedReplica{process: p, client: kubernetes.NewForConfigOrDie(config)})
	}
	return g
}

// onceOnly keeps client-go from sending a request again, whose first try may have been carried out.
type onceOnly struct{ http.RoundTripper }

func (o onceOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

func (g *killedGroup) deployments() (all []typedappsv1.DeploymentInterface) {
	for _, r := range g.replicas {
		all = append(all, r.client.AppsV1().Deployments("default"))
	}
	return all
}

// leader returns the plinth that runs the controllers, or nil. One that is alone is not elected.
func (g *killedGroup) leader() *killedReplica {
	for _, r := range g.replicas {
		const runs, ended = "this server runs the controllers controllers=", "this server runs the controllers no more"
		log := r.logged()[r.since:]
		if r.running() && (len(g.replicas) == 1 || strings.LastIndex(log, runs) > strings.LastIndex(log, ended)) {
			return r
		}
	}
	return nil
}

// killLeader kills the plinth that runs the controllers, and starts it again: at once, or when another one has taken over.
func (g *killedGroup) killLeader(t *testing.T, atOnce bool) {
	t.Helper()
	var leader *killedReplica
	soon(t, "a plinth runs the controllers", func() bool {
		leader = g.leader()
		return leader != nil
	})
	leader.kill()
	begun := time.Now()
	leader.since = len(leader.logged())
	restart := func() {
		leader.process = serveFor(t, leader.dir, g.dsn, append(g.flags, "--listen="+leader.address())...)
	}
	if atOnce || len(g.replicas) == 1 {
		restart()
	}
	soon(t, "another one runs the controllers", func() bool { return g.leader() != nil })
	t.Logf("controllers run %v after a kill", time.Since(begun).Round(10*time.Millisecond))
	if !leader.running() {
		restart()
	}
}

// expectControllers makes a Deployment, whose pods become ready.
func (g *killedGroup) expectControllers(t *testing.T, name string) {
	t.Helper()
	deployments := g.deployments()[0]
	_, err := deployments.Create(t.Context(), aDeployment(name, 2), metav1.CreateOptions{})
	must(t, err)
	begun := time.Now()
	soon(t, "pods of "+name+" are ready", func() bool {
		d, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		return d.Status.AvailableReplicas == 2
	})
	t.Logf("pods of a new Deployment are ready after %v", time.Since(begun).Round(10*time.Millisecond))
	must(t, deployments.Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func aDeployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selectorOf(name), Template: podTemplate(name)},
	}
}

// expectPods waits until all that is left is these Deployments, a ReplicaSet for each, and their pods, all ready. Then it
// reads the same at all plinths.
func (g *killedGroup) expectPods(t *testing.T, want map[string]int32) {
	t.Helper()
	for i, r := range g.replicas {
		var wrong error
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			if wrong = differs(t.Context(), r.client, want); wrong == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("read at plinth %d: %v", i, wrong)
			}
		}
	}
}

// differs says what is not as it should be.
func differs(ctx context.Context, client kubernetes.Interface, want map[string]int32) error {
	deployments, err := client.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	sets, err := client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	owned := map[types.UID]int32{} // how many pods a ReplicaSet has
	for _, p := range pods.Items {
		if !podIsReady(&p) || p.DeletionTimestamp != nil {
			return fmt.Errorf("the pod %s is not ready, or about to be deleted", p.Name)
		}
		owned[ownerOf(&p.ObjectMeta)]++
	}
	setOf := map[types.UID]*appsv1.ReplicaSet{}
	for _, s := range sets.Items {
		owner := ownerOf(&s.ObjectMeta)
		if setOf[owner] != nil {
			return fmt.Errorf("a Deployment has the ReplicaSets %s and %s", setOf[owner].Name, s.Name)
		}
		setOf[owner] = &s
	}
	found := map[string]int32{}
	for _, d := range deployments.Items {
		set := setOf[d.UID]
		if set == nil || d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas || owned[set.UID] != *d.Spec.Replicas {
			return fmt.Errorf("the Deployment %s of %d has the ReplicaSet %v, and its status is %+v", d.Name, *d.Spec.Replicas, set, d.Status)
		}
		found[d.Name] = *d.Spec.Replicas
		delete(setOf, d.UID)
		delete(owned, set.UID)
	}
	if !maps.Equal(found, want) || len(setOf) > 0 || len(owned) > 0 {
		return fmt.Errorf("there are Deployments %v, want %v; %d ReplicaSets and the pods of %d more have no owner", found, want, len(setOf), len(owned))
	}
	return nil
}

func ownerOf(m *metav1.ObjectMeta) types.UID {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return owner.UID
	}
	return ""
}

// gone stands for the number of replicas of a Deployment that is not there.
const gone int32 = -1

// keeper creates, scales and deletes Deployments that nobody else touches. It knows in which state each of them is, or
// in which states it may be while an answer is missing.
type keeper struct {
	number int
	random *rand.Rand
	at     []typedappsv1.DeploymentInterface
	names  []string
	may    map[string]map[int32]bool // by name: how many replicas the Deployment may have, or gone
	err    error                     // what may not happen

	acknowledged, refused, unanswered int
}

func newKeeper(number int, random *rand.Rand, at []typedappsv1.DeploymentInterface) *keeper {
	k := &keeper{number: number, random: random, at: at, may: map[string]map[int32]bool{}}
	for i := range 3 {
		name := fmt.Sprintf("kept-%d-%d", number, i)
		k.names = append(k.names, name)
		k.may[name] = map[int32]bool{gone: true}
	}
	return k
}

// work does one thing after the other until the end, or until something happens that may not.
func (k *keeper) work(ctx context.Context) {
	for k.err == nil && sleep.For(ctx, time.Duration(20+k.random.IntN(300))*time.Millisecond) == nil {
		name := k.names[k.random.IntN(len(k.names))]
		may := k.may[name]
		replicas := int32(k.random.IntN(9))
		// A request that has begun is not cut, so that the server alone decides what becomes of it.
		k.err = k.change(context.WithoutCancel(ctx), k.at[k.random.IntN(len(k.at))], name, may, replicas)
	}
}

// change sends a request and notes what follows from its answer.
func (k *keeper) change(ctx context.Context, at typedappsv1.DeploymentInterface, name string, may map[int32]bool, replicas int32) error {
	switch {
	case may[gone]:
		_, err := at.Create(ctx, aDeployment(name, replicas), metav1.CreateOptions{})
		return k.note("create", name, may, replicas, err, apierrors.IsAlreadyExists, true)
	case k.random.IntN(4) == 0:
		background := metav1.DeletePropagationBackground
		err := at.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		return k.note("delete", name, may, gone, err, apierrors.IsNotFound, false)
	default:
		_, err := at.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
		return k.note("scale", name, may, replicas, err, apierrors.IsNotFound, false)
	}
}

// note narrows down in which states a Deployment may be, by the answer to a request that makes the state next of it. The
// request works only if it was gone, or only if it was there; refused recognizes the answer that it was not so.
func (k *keeper) note(verb, name string, may map[int32]bool, next int32, err error, refused func(error) bool, wasGone bool) error {
	matching := func(n int32, _ bool) bool { return (n == gone) == wasGone }
	was := fmt.Sprint(slices.Sorted(maps.Keys(may)))
	switch {
	case err == nil:
		k.acknowledged++
		maps.DeleteFunc(may, func(n int32, ok bool) bool { return !matching(n, ok) })
		if len(may) == 0 {
			return fmt.Errorf("%s %s was acknowledged, though its replicas had to be %s (%d: gone)", verb, name, was, gone)
		}
		clear(may)
		may[next] = true
	case refused(err):
		k.refused++
		maps.DeleteFunc(may, matching)
		if len(may) == 0 {
			return fmt.Errorf("%s %s, though its replicas had to be %s (%d: gone): %w", verb, name, was, gone, err)
		}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s %s: %w", verb, name, err)
	default:
		k.unanswered++
		may[next] = true
	}
	return nil
}

// settle reads how many replicas each Deployment has, which has to be one of the numbers that are possible.
func (k *keeper) settle(t *testing.T) map[string]int32 {
	t.Helper()
	found := map[string]int32{}
	for name, may := range k.may {
		d, err := k.at[0].Get(t.Context(), name, metav1.GetOptions{})
		n := gone
		if err == nil {
			n = *d.Spec.Replicas
			found[name] = n
		} else if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if !may[n] {
			t.Errorf("%s has %d replicas, and must have one of %v (%d: gone)", name, n, slices.Sorted(maps.Keys(may)), gone)
		}
	}
	return found
}

// TestKeeperNotes has answers that a keeper must not take: each of them says that an acknowledged change was lost.
func TestKeeperNotes(t *testing.T) {
	t.Parallel()
	missing := apierrors.NewNotFound(appsv1.Resource("deployments"), "x")
	exists := apierrors.NewAlreadyExists(appsv1.Resource("deployments"), "x")
	lost := errors.New("EOF")
	for name, c := range map[string]struct {
		may       []int32
		verb      string
		err       error
		wrong     bool
		afterward []int32
	}{
		"created":                         {[]int32{gone}, "create", nil, false, []int32{5}},
		"created though it is there":      {[]int32{2}, "create", nil, true, nil},
		"created, or it was before":       {[]int32{gone, 2}, "create", nil, false, []int32{5}},
		"is there though it is gone":      {[]int32{gone}, "create", exists, true, nil},
		"was created before":              {[]int32{gone, 2}, "create", exists, false, []int32{2}},
		"perhaps created":                 {[]int32{gone}, "create", lost, false, []int32{gone, 5}},
		"scaled":                          {[]int32{2, 3}, "scale", nil, false, []int32{5}},
		"gone though it was acknowledged": {[]int32{2, 3}, "scale", missing, true, nil},
		"was deleted before":              {[]int32{gone, 3}, "scale", missing, false, []int32{gone}},
		"perhaps scaled":                  {[]int32{2}, "scale", lost, false, []int32{2, 5}},
		"refused without a reason":        {[]int32{2}, "scale", apierrors.NewBadRequest("no"), true, nil},
	} {
		k, may := &keeper{}, map[int32]bool{}
		for _, n := range c.may {
			may[n] = true
		}
		refused := apierrors.IsNotFound
		if c.verb == "create" {
			refused = apierrors.IsAlreadyExists
		}
		err := k.note(c.verb, "x", may, 5, c.err, refused, c.verb == "create")
		if got := slices.Sorted(maps.Keys(may)); (err != nil) != c.wrong || !c.wrong && !slices.Equal(got, c.afterward) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.afterward)
		}
	}
}
