package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestQuota has many clients of two servers (one on SQLite) create at once what a quota
// allows only some of.
func TestQuota(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, dsn string) {
		var servers []*process
		if strings.HasPrefix(dsn, "sqlite") {
			servers = append(servers, serveFor(t, t.TempDir()+"/a", dsn))
		} else {
			a, b := serveReplicas(t, dsn)
			servers = append(servers, a, b)
		}
		var clients []kubernetes.Interface
		for _, p := range servers {
			clients = append(clients, kubernetes.NewForConfigOrDie(p.config(t)))
		}
		q := &quotaTest{clients: clients, namespace: "limited"}
		q.begin(t)
		q.fill(t, 40, quotaLimit-1)
		q.refuses(t)
		q.replenishes(t, 3)
	})
}

type quotaTest struct {
	clients   []kubernetes.Interface
	namespace string
	made      atomic.Int64
}

// quotaLimit is how many ConfigMaps a namespace may have; every namespace begins with one.
const quotaLimit = 11

// begin makes a namespace with a quota.
func (q *quotaTest) begin(t *testing.T) {
	t.Helper()
	client := q.clients[0]
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.namespace}}, metav1.CreateOptions{})
	must(t, err)
	soon(t, "the namespace has its authority", func() bool {
		_, err := client.CoreV1().ConfigMaps(q.namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil
	})
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "some"}}
	quota.Spec.Hard = corev1.ResourceList{"count/configmaps": *resource.NewQuantity(quotaLimit, resource.DecimalSI)}
	_, err = client.CoreV1().ResourceQuotas(q.namespace).Create(t.Context(), quota, metav1.CreateOptions{})
	must(t, err)
	q.await(t, "1")
	q.settle(t)
}

// settle waits until nothing is counted any more. A count that runs while another server stores what
// it has admitted misses that, as upstream's does.
func (q *quotaTest) settle(t *testing.T) {
	t.Helper()
	for _, client := range q.clients {
		soon(t, "the controller of quotas is idle", func() bool {
			text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
			must(t, err)
			for _, queue := range []string{"resourcequota_primary", "resourcequota_priority", "resource_quota_controller_resource_changes"} {
				added, ended := metric(text, "workqueue_adds_total", queue), metric(text, "workqueue_work_duration_seconds_count", queue)
				if added != ended {
					return false
				}
			}
			return true
		})
	}
}

// metric returns the value of a queue's metric, as it is written; empty if there is none.
func metric(text []byte, name, queue string) string {
	_, value, _ := strings.Cut(string(text), fmt.Sprintf("\n%s{name=%q} ", name, queue))
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// await waits until every server shows the quota used that far.
func (q *quotaTest) await(t *testing.T, used string) {
	t.Helper()
	for _, client := range q.clients {
		soon(t, used+" are used", func() bool {
			quota, err := client.CoreV1().ResourceQuotas(q.namespace).Get(t.Context(), "some", metav1.GetOptions{})
			must(t, err)
			count, ok := quota.Status.Used["count/configmaps"]
			return ok && count.String() == used
		})
	}
}

// create makes one ConfigMap more. A server that lost the race for the quota too often
// says so; then it tries again, as clients do.
func (q *quotaTest) create(t *testing.T) error {
	i := q.made.Add(1)
	for {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cm-%d", i)}}
		_, err := q.clients[int(i)%len(q.clients)].CoreV1().ConfigMaps(q.namespace).Create(t.Context(), cm, metav1.CreateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// fill has n clients create one each, at once; the quota has room for some of them.
func (q *quotaTest) fill(t *testing.T, n, room int) {
	t.Helper()
	var done, failed atomic.Int64
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			switch err := q.create(t); {
			case err == nil:
				done.Add(1)
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: some"):
				failed.Add(1)
			default:
				t.Errorf("create: %v", err)
			}
		})
	}
	clients.Wait()
	if done.Load() != int64(room) || failed.Load() != int64(n-room) {
		t.Errorf("%d of %d were created, %d refused; there was room for %d", done.Load(), n, failed.Load(), room)
	}
	list, err := q.clients[0].CoreV1().ConfigMaps(q.namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != quotaLimit {
		t.Errorf("there are %d objects where %d are allowed", len(list.Items), quotaLimit)
	}
	q.await(t, fmt.Sprint(quotaLimit))
}

// refuses checks upstream's words, and that a dry run is refused too.
func (q *quotaTest) refuses(t *testing.T) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "more"}}
	for _, dry := range [][]string{nil, {metav1.DryRunAll}} {
		_, err := q.clients[0].CoreV1().ConfigMaps(q.namespace).Create(t.Context(), cm, metav1.CreateOptions{DryRun: dry})
		want := `configmaps "more" is forbidden: exceeded quota: some, requested: count/configmaps=1, used: count/configmaps=11, limited: count/configmaps=11`
		if err == nil || err.Error() != want {
			t.Errorf("dry run %v:\n got %v\nwant %s", dry, err, want)
		}
	}
}

// replenishes deletes n objects: then n can be created.
func (q *quotaTest) replenishes(t *testing.T, n int) {
	t.Helper()
	configMaps := q.clients[0].CoreV1().ConfigMaps(q.namespace)
	list, err := configMaps.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i, cm := range list.Items[:n] {
		must(t, configMaps.Delete(t.Context(), cm.Name, metav1.DeleteOptions{}))
		if len(q.clients) > 1 { // or a deletion that is counted already may be counted again below
			q.await(t, fmt.Sprint(quotaLimit-i-1))
			q.settle(t)
		}
	}
	q.await(t, fmt.Sprint(quotaLimit-n))
	q.fill(t, 2*n, n)
}
