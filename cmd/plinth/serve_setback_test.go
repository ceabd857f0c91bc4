package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestDatabaseSetBack restores an older state of the database under a running plinth, as a bad promotion
// does. Informers recover, old watches end, controllers go on, and what is lost is named.
func TestDatabaseSetBack(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			dir, dsn := t.TempDir()+"/data", logtest.CreateDatabase(t, db)
			p := serveFor(t, dir, dsn)
			client := kubernetes.NewForConfigOrDie(p.config(t))
			maps := client.CoreV1().ConfigMaps("default")
			put := func(name string) *corev1.ConfigMap {
				c, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				must(t, err)
				return c
			}
			for i := range 3 {
				put(fmt.Sprint("kept-", i))
			}
			factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
			informer := factory.Core().V1().ConfigMaps().Informer()
			factory.Start(t.Context().Done())
			factory.WaitForCacheSync(t.Context().Done())

			db.Stop()
			must(t, db.Save())
			must(t, db.Start())
			expectBack(t, p)
			for i := range 3 {
				put(fmt.Sprint("lost-", i))
			}
			must(t, maps.Delete(t.Context(), "kept-1", metav1.DeleteOptions{}))
			last := put("lost-last")
			served, err := strconv.ParseInt(last.ResourceVersion, 10, 64)
			must(t, err)
			soon(t, "the informer has what will be lost", func() bool {
				_, there, _ := informer.GetStore().GetByKey("default/lost-last")
				return there
			})
			if logged := p.logged(); strings.Contains(logged, "set back") {
				t.Errorf("a restart counts as a set-back:\n%s", logged)
			}

			db.Kill()
			must(t, db.Restore())
			must(t, db.Start())
			soon(t, "there is an event", func() bool {
				events, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=DatabaseSetBack"})
				return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "are gone")
			})
			expectBack(t, p)
			list, err := maps.List(t.Context(), metav1.ListOptions{})
			must(t, err)
			if now, err := strconv.ParseInt(list.ResourceVersion, 10, 64); err != nil || now <= served+sqlstore.Slack {
				t.Errorf("goes on at %s after %d", list.ResourceVersion, served)
			}
			want := versions{}
			soon(t, "the informer has what the server has", func() bool {
				list, err := maps.List(t.Context(), metav1.ListOptions{})
				must(t, err)
				want = versions{}
				for _, c := range list.Items { // controllers make some of them again
					want[c.Name] = c.ResourceVersion
				}
				return cmp.Equal(want, held(informer.GetStore()))
			})
			if want["kept-1"] == "" || want["lost-0"] != "" {
				t.Errorf("the state is not that of before: %v", want)
			}
			after := put("after")
			soon(t, "the informer goes on", func() bool { return held(informer.GetStore())["after"] == after.ResourceVersion })

			w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: last.ResourceVersion})
			if err == nil {
				ev := <-w.ResultChan()
				err = apierrors.FromObject(ev.Object)
				w.Stop()
			}
			if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				t.Errorf("a watch from before: %v", err)
			}
			_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
			must(t, err)
			soon(t, "controllers go on", func() bool {
				_, err := client.CoreV1().ServiceAccounts("new").Get(t.Context(), "default", metav1.GetOptions{})
				return err == nil
			})
			logged := p.logged()
			for _, key := range []string{"lost-0", "lost-1", "lost-2", "lost-last", "kept-1"} {
				if !strings.Contains(logged, "key=/registry/core/configmaps/default/"+key+" ") {
					t.Errorf("the log does not name %s", key)
				}
			}
			if metrics := request(t, p, "GET", "/metrics", ""); !strings.Contains(metrics, "plinth_database_set_back_total 1") {
				t.Error("the metric does not count it")
			}

			must(t, p.stop())
			p = serveFor(t, dir, dsn)
			again, err := kubernetes.NewForConfigOrDie(p.config(t)).CoreV1().ConfigMaps("default").Get(t.Context(), "after", metav1.GetOptions{})
			if err != nil || again.ResourceVersion != after.ResourceVersion {
				t.Errorf("after a restart: %+v, %v", again, err)
			}
			if strings.Contains(p.logged(), "older than what was served") {
				t.Error("a restart takes the database for an older one")
			}
		})
	}
}
