package storageversion_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers/storageversion"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

const scalers = "/registry/autoscaling/horizontalpodautoscalers/default/"

// oldScaler is how a release that stores autoscaling/v1 stores a HorizontalPodAutoscaler.
func oldScaler(name string) string {
	return `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"` + name + `","namespace":"default","uid":"u-` + name + `","creationTimestamp":"2026-01-01T00:00:00Z"},` +
		`"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web","apiVersion":"apps/v1"},"maxReplicas":3},"status":{"currentReplicas":0,"desiredReplicas":0}}`
}

// fixture is an API with a Migrator, whose writes of objects go through a door.
type fixture struct {
	*apitest.API
	t      *testing.T
	writes atomic.Int64                                      // that have come to the door
	door   atomic.Pointer[func(*http.Request) (int, string)] // answers in the API's place, unless the code is 0
	stop   func()
}

func open(t *testing.T, o sqlstore.Options) *fixture {
	t.Helper()
	c := &fixture{t: t, API: apitest.OpenOn(t, storetest.Open(t, storetest.Memory, o))}
	for _, name := range []string{"default", "other"} {
		c.put("/registry/core/namespaces/"+name, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"`+name+`","uid":"u"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`)
	}
	c.run()
	t.Cleanup(func() { c.stop() })
	return c
}

// run starts a Migrator; stop ends it.
func (c *fixture) run() {
	c.t.Helper()
	config := clientrest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return through(func(r *http.Request) (*http.Response, error) {
			c.writes.Add(1)
			if door := c.door.Load(); door != nil {
				if code, message := (*door)(r); code != 0 {
					return refusal(r, code, message)
				}
			}
			return next.RoundTrip(r)
		})
	})
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	m, err := storageversion.New(storageversion.Config{
		Migrations: c.Client.StoragemigrationV1().StorageVersionMigrations(), Informer: factory.Storagemigration().V1().StorageVersionMigrations(),
		Objects: dynamic.NewForConfigOrDie(config), Store: c.Store, Kinds: c.Kinds, Logger: slog.New(slog.NewTextHandler(c.t.Output(), nil)),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	c.stop = func() { cancel(); running.Wait(); factory.Shutdown() }
}

type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refusal is the answer of an API, or an error of the way to it if code is negative.
func refusal(r *http.Request, code int, message string) (*http.Response, error) {
	if code < 0 {
		return nil, errors.New(message)
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`,
		map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable}[code], message, code)
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code), ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)),
	}, nil
}

// refuse has the door answer writes; code 0 lets them through.
func (c *fixture) refuse(answer func(r *http.Request) (code int, message string)) {
	c.door.Store(&answer)
}

func (c *fixture) put(key, value string) {
	c.t.Helper()
	if _, err := storetest.Put(c.t.Context(), c.Store, key, value); err != nil {
		c.t.Fatal(err)
	}
}

// migrate makes a migration whose turn it is.
func (c *fixture) migrate(name, group, resource string) {
	c.t.Helper()
	svms := c.Client.StoragemigrationV1().StorageVersionMigrations()
	svm, err := svms.Create(c.t.Context(), &svmv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       svmv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Group: group, Resource: resource}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	svm.Status.ResourceVersion = strconv.FormatInt(c.Store.Revision(), 10)
	meta.SetStatusCondition(&svm.Status.Conditions, metav1.Condition{Type: string(svmv1.MigrationRunning), Status: metav1.ConditionTrue, Reason: "MigrationRunning", Message: "The migration is running"})
	if _, err := svms.UpdateStatus(c.t.Context(), svm, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// says waits until a migration has conditions, as TYPE REASON MESSAGE, of which a * ends one of any end.
func (c *fixture) says(name string, want ...string) {
	c.t.Helper()
	var got []string
	apitest.Eventually(c.t, fmt.Sprintf("%s says %q", name, want), func() bool {
		svm, err := c.Client.StoragemigrationV1().StorageVersionMigrations().Get(c.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		got = got[:0]
		for _, cond := range svm.Status.Conditions {
			got = append(got, cond.Type+" "+cond.Reason+" "+cond.Message)
		}
		for i := range got {
			if start, any := "", false; i < len(want) {
				if start, any = strings.CutSuffix(want[i], "*"); got[i] == want[i] || any && strings.HasPrefix(got[i], start) {
					continue
				}
			}
			return false
		}
		return len(got) == len(want)
	})
}

const completed = "Succeeded StorageVersionMigrationSucceeded Migration completed"

// stored checks how an object is stored.
func (c *fixture) stored(key, apiVersion string) {
	c.t.Helper()
	if e := c.Store.Get(key); e == nil || !strings.Contains(string(e.Value), `"apiVersion":"`+apiVersion+`","metadata"`) {
		c.t.Errorf("%s is stored as %s, want %s", key, e.Value, apiVersion)
	}
}
