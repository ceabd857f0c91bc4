package aggregator

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	// checkEvery is the longest pause between two checks of an extension server. The pauses
	// after failed checks grow up to it, as upstream.
	checkEvery      = 30 * time.Second
	checkAgainFirst = 100 * time.Millisecond
	checkWorkers    = 5
	// maxMessagePause is the longest pause between two writes of a failure whose message changes.
	maxMessagePause = 10 * time.Minute
)

// errUnavailable is the error of a check that failed. The object's condition says why.
var errUnavailable = fmt.Errorf("the extension server is away: %w", reconcile.ErrReported)

// availability keeps the condition Available of APIServices that name a Service
// (upstream: kube-aggregator/pkg/controllers/status/remote).
type availability struct {
	a     *APIServices
	names reconcile.Queue
	seen  map[string]looked // what the last check of each name was about
}

type looked struct {
	uid  types.UID
	spec apiregistration.APIServiceSpec
}

// watchOver keeps the conditions while there are extension servers, until ctx ends.
func (a *APIServices) watchOver(ctx context.Context) {
	for {
		changed := a.remote.Changed()
		if len(a.remote.List()) > 0 {
			a.keepAvailability(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// keepAvailability returns when there are no extension servers any more.
func (a *APIServices) keepAvailability(ctx context.Context) {
	v := &availability{
		a: a, seen: map[string]looked{},
		names: reconcile.NewNamedQueue("RemoteAvailabilityController", checkAgainFirst, checkEvery),
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer v.names.ShutDown()
	defer cancel()
	for range checkWorkers {
		wg.Go(func() { reconcile.Work(ctx, a.config.Logger, "APIService", v.names, v.check) })
	}
	for _, prefix := range []string{lister.ServicePrefix, lister.EndpointsPrefix, lister.SlicePrefix} {
		wg.Go(func() { a.followAgain(ctx, prefix, func(ev *sqlstore.Event) { v.addressChanged(prefix, ev) }) })
	}
	v.addChanged(ctx)
}

// addChanged queues new and changed APIServices, and all of them every checkEvery.
func (v *availability) addChanged(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		changed := v.a.remote.Changed()
		all := v.a.remote.List()
		if len(all) == 0 {
			return
		}
		for _, x := range all {
			now := looked{x.Object.UID, x.Object.Spec}
			if !reflect.DeepEqual(v.seen[x.Object.Name], now) {
				v.seen[x.Object.Name] = now
				v.names.Add(x.Object.Name)
			}
		}
		select {
		case <-changed:
		case <-tick.C:
			clear(v.seen)
		case <-ctx.Done():
			return
		}
	}
}

// addressChanged queues the group versions behind a Service that may have moved.
func (v *availability) addressChanged(prefix string, ev *sqlstore.Event) {
	for _, x := range v.a.remote.List() {
		ref := x.Object.Spec.Service
		key := prefix + ref.Namespace + "/" + ref.Name
		if ev.Entry.Key == key || prefix == lister.SlicePrefix && lister.IsSliceOf(ev.Entry, ref) {
			v.names.Add(x.Object.Name)
		}
	}
}

// check checks one extension server and writes the condition.
func (v *availability) check(ctx context.Context, name string) error {
	x := v.a.remote.Find(name)
	if x == nil {
		return nil
	}
	found := v.look(ctx, x)
	if ctx.Err() != nil {
		return nil
	}
	now := x.Object.DeepCopy()
	helper.SetAPIServiceCondition(now, found)
	if !reflect.DeepEqual(now.Status, x.Object.Status) && v.worthTelling(x.Object, found) {
		if _, err := v.a.api.APIServices().UpdateStatus(ctx, now, metav1.UpdateOptions{}); reconcile.Overtaken(err) {
			return errUnavailable
		} else if err != nil {
			return err
		}
	}
	if found.Reason == failedCheck {
		return errUnavailable
	}
	return nil
}

// worthTelling tells whether a condition that differs from that of object is written now: one that
// says the same in other words may wait.
func (v *availability) worthTelling(object *apiregistration.APIService, found apiregistration.APIServiceCondition) bool {
	told := helper.GetAPIServiceConditionByType(object, apiregistration.Available)
	if told == nil || told.Status != found.Status || told.Reason != found.Reason {
		return true
	}
	e := v.a.config.Store.Get(apiServicePrefix + object.Name)
	return e == nil || reconcile.MessageDue(told.LastTransitionTime.Time, time.UnixMilli(e.At), time.Now(), maxMessagePause)
}

const failedCheck = "FailedDiscoveryCheck"

// look makes upstream's checks in upstream's order: the Service, its port, its endpoints, the
// server.
func (v *availability) look(ctx context.Context, x *Service) apiregistration.APIServiceCondition {
	ref := x.Object.Spec.Service
	svc := lister.Get[corev1.Service](v.a.config.Store, lister.ServicePrefix, ref.Namespace+"/"+ref.Name)
	if svc == nil {
		return away("ServiceNotFound", "service/%s in %q is not present", ref.Name, ref.Namespace)
	}
	if svc.Spec.Type == corev1.ServiceTypeClusterIP {
		if c := v.lookForEndpoints(svc, *ref.Port); c != nil {
			return *c
		}
	}
	if err := x.check(ctx); err != nil {
		return away(failedCheck, "%s", err)
	}
	c := away("Passed", "all checks passed")
	c.Status = apiregistration.ConditionTrue
	return c
}

func away(reason, format string, args ...any) apiregistration.APIServiceCondition {
	return apiregistration.APIServiceCondition{
		Type: apiregistration.Available, Status: apiregistration.ConditionFalse, LastTransitionTime: metav1.Now(),
		Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func (v *availability) lookForEndpoints(svc *corev1.Service, port int32) *apiregistration.APIServiceCondition {
	var c apiregistration.APIServiceCondition
	name, ok := nameOfPort(svc, port)
	there, ready := lister.Endpoints(v.a.config.Store, svc, name)
	switch {
	case !ok:
		c = away("ServicePortError", "service/%s in %q is not listening on port %d", svc.Name, svc.Namespace, port)
	case !there:
		c = away("EndpointsNotFound", "cannot find endpointslices for service/%s in %q", svc.Name, svc.Namespace)
	case !ready:
		c = away("MissingEndpoints", "endpointslices for service/%s in %q have no addresses with port name %q", svc.Name, svc.Namespace, name)
	default:
		return nil
	}
	return &c
}

func nameOfPort(svc *corev1.Service, port int32) (string, bool) {
	for _, p := range svc.Spec.Ports {
		if p.Port == port {
			return p.Name, true
		}
	}
	return "", false
}
