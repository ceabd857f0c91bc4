package fairness

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
)

var (
	short = &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: 2}
	long  = &flowcontrolv1.QueuingConfiguration{Queues: 8, HandSize: 2, QueueLengthLimit: 100}
)

// Requests come into the level of the first FlowSchema that matches.
func TestClassification(t *testing.T) {
	e := open(t)
	e.eventually("the objects are not known", func() bool { return e.ask(ann, get).level == e.uid("global-default") })
	for _, tt := range []struct {
		who   user.Info
		info  *apirequest.RequestInfo
		level string
	}{
		{admin, get, "exempt"},
		{ann, get, "global-default"},
		{&user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, get, "global-default"},
		{&user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, &apirequest.RequestInfo{Verb: "get", Path: "/livez"}, "exempt"},
		{&user.DefaultInfo{Name: "system:serviceaccount:team:robot", Groups: []string{"system:serviceaccounts", user.AllAuthenticated}}, get, "workload-low"},
		{&user.DefaultInfo{Name: "system:serviceaccount:kube-system:robot", Groups: []string{"system:serviceaccounts:kube-system", user.AllAuthenticated}}, get, "workload-high"},
		{&user.DefaultInfo{Name: "system:node:one", Groups: []string{user.NodesGroup, user.AllAuthenticated}}, get, "system"},
		{&user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{user.AllAuthenticated}}, get, "workload-high"},
		{&user.DefaultInfo{Name: "nobody", Groups: nil}, get, "catch-all"},
		// The same name with other groups.
		{&user.DefaultInfo{Name: "ann", Groups: []string{user.SystemPrivilegedGroup}}, get, "exempt"},
		{ann, get, "global-default"},
	} {
		for _, way := range []string{"first", "again"} { // the second time from memory
			if a := e.ask(tt.who, tt.info); a.level != e.uid(tt.level) || a.code != 200 {
				t.Errorf("%s %s%s (%s): %+v, want level %s", tt.who.GetName(), tt.info.Path, tt.info.Resource, way, a, tt.level)
			}
		}
	}
}

// A request for which there is no seat waits in a queue, and is turned away if the queue is full.
// Others are not held up, nor are exempt requests.
func TestQueue(t *testing.T) {
	e := open(t)
	e.limit(short)
	b := e.block(ann, get, testSeats)
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if a := e.ask(ann, get); a.code != 200 {
				t.Errorf("a request that waited: %+v", a)
			}
		})
	}
	e.eventually("nobody waits", func() bool {
		return strings.Contains(e.page(DebugPaths[0]), "test,              1,            false,  false,       2,               5,")
	})
	if a := e.ask(ann, get); a.code != http.StatusTooManyRequests || a.retryAfter != "1" || a.level != e.uid("test") {
		t.Errorf("a request too many: %+v", a)
	}
	if a := e.ask(admin, get); a.code != 200 {
		t.Errorf("admin: %+v", a)
	}
	b.release()
	waiting.Wait()
	e.block(ann, get, testSeats).release()
}

// Without queues a request is turned away when there is no seat.
func TestReject(t *testing.T) {
	e := open(t)
	e.limit(nil)
	b := e.block(ann, get, testSeats)
	if a := e.ask(bob, get); a.code != http.StatusTooManyRequests {
		t.Errorf("a request too many: %+v", a)
	}
	b.release()
	if a := e.ask(bob, get); a.code != 200 {
		t.Errorf("afterwards: %+v", a)
	}
}

// A request that nobody waits for any more leaves its queue.
func TestGivesUp(t *testing.T) {
	e := open(t)
	e.limit(long)
	b := e.block(ann, get, testSeats)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if a := e.serve(ctx, ann, get, func(*http.Request) {}); a.code != http.StatusTooManyRequests {
		t.Errorf("a request whose time is over: %+v", a)
	}
	b.release()
	e.block(ann, get, testSeats).release()
}

// Whichever way they take, requests never have more seats than their level, and all are served.
func TestNeverMoreThanSeats(t *testing.T) {
	e := open(t)
	e.limit(long)
	l := e.level(ann)
	var running, most, served atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			who := []user.Info{ann, bob}[rand.IntN(2)]
			for range 200 {
				a := e.serve(t.Context(), who, get, func(*http.Request) {
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
					running.Add(-1)
				})
				if a.code == 200 {
					served.Add(1)
				}
				if rand.IntN(20) == 0 {
					time.Sleep(5 * time.Millisecond) // the queues run empty now and then
				}
			}
		})
	}
	all.Wait()
	if most.Load() > testSeats || served.Load() != 20*200 {
		t.Errorf("%d requests ran at once, of %d seats; %d were served", most.Load(), testSeats, served.Load())
	}
	e.eventually("seats are still taken", func() bool {
		return l.seats() == 0 && l.gauges.waiting.Load() == 0 && l.IsIdle()
	})
}

// A user who floods the level does not keep another from it.
func TestFair(t *testing.T) {
	e := open(t)
	e.limit(&flowcontrolv1.QueuingConfiguration{Queues: 64, HandSize: 1, QueueLengthLimit: 100})
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for range 60 {
		flood.Go(func() {
			for ctx.Err() == nil {
				e.serve(t.Context(), ann, get, func(*http.Request) { time.Sleep(5 * time.Millisecond) })
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	var slowest time.Duration
	for range 20 {
		begun := time.Now()
		if a := e.ask(bob, get); a.code != 200 {
			t.Errorf("bob: %+v", a)
		}
		slowest = max(slowest, time.Since(begun))
	}
	cancel()
	flood.Wait()
	// In one queue for all, each would wait for 55 requests.
	if slowest > 30*time.Second {
		t.Errorf("bob waited for %v", slowest)
	}
}

// A watch has a seat until it has begun, by both ways.
func TestWatch(t *testing.T) {
	e := open(t)
	e.limit(long)
	l := e.level(ann)
	watch := *get
	watch.Verb, watch.Name = "watch", ""
	var watches sync.WaitGroup
	end := make(chan struct{})
	begin := make(chan struct{})
	for range 2 * testSeats { // half of them wait in the queue
		watches.Go(func() {
			a := e.serve(t.Context(), ann, &watch, func(r *http.Request) {
				<-begin
				flowcontrol.WatchInitialized(r.Context())
				<-end
			})
			if a.code != 200 {
				t.Errorf("a watch: %+v", a)
			}
		})
	}
	e.eventually("the seats are not taken", func() bool {
		return l.gauges.waiting.Load() == testSeats
	})
	close(begin)
	e.block(bob, get, testSeats).release()
	known := func() int {
		return e.upstream.GetInterestedWatchCount(&apirequest.RequestInfo{Verb: "create", Resource: "configmaps", Namespace: "default"})
	}
	// bob's requests may have been let in before the last of the watches.
	e.eventually("writes do not know of all watches", func() bool { return known() == 2*testSeats })
	close(end)
	watches.Wait()
	if n := known(); n != 0 {
		t.Errorf("writes know of %d watches after their end", n)
	}
}

// A handler that panics gives its seat back.
func TestPanic(t *testing.T) {
	e := open(t)
	e.limit(long)
	for range 3 * testSeats {
		func() {
			defer func() {
				if recover() != "over" {
					t.Error("the panic is lost")
				}
			}()
			e.serve(t.Context(), ann, get, func(*http.Request) { panic("over") })
		}()
	}
	e.block(ann, get, testSeats).release()
}

// A list is as wide as its objects are large, and a watch that begins with the state as such a list.
func TestWidth(t *testing.T) {
	e := open(t)
	e.limit(long)
	for i := range 241 {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "class" + strconv.Itoa(i)}, Description: strings.Repeat("x", 1000)}
		if _, err := e.api.Client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list := &apirequest.RequestInfo{IsResourceRequest: true, Verb: "list", APIGroup: schedulingv1.GroupName, APIVersion: "v1", Resource: "priorityclasses"}
	r := &Request{HTTP: (&http.Request{}).WithContext(t.Context()), Info: list, User: ann}
	r.HTTP.URL = mustParse("/apis/scheduling.k8s.io/v1/priorityclasses?resourceVersion=0")
	if w := e.widthOf(r, names{"exempt", "exempt"}); w.InitialSeats < 3 || w.InitialSeats > 5 { // a seat for 100,000 bytes
		t.Errorf("a list of 241 objects of 1,000 bytes and more: %+v", w)
	}
	if w := e.widthOf(r, names{"test", "test"}); w.InitialSeats != 1 { // at most 15% of the level
		t.Errorf("a list of 241 objects in a small level: %+v", w)
	}
	list.Verb = "watch"
	if w := e.widthOf(r, names{"exempt", "exempt"}); w.InitialSeats < 3 {
		t.Errorf("a watch that begins with the state: %+v", w)
	}
	r.HTTP.URL = mustParse("/apis/scheduling.k8s.io/v1/priorityclasses?watch=1&resourceVersion=7")
	if w := e.widthOf(r, names{"exempt", "exempt"}); w.InitialSeats != 1 {
		t.Errorf("a watch of changes: %+v", w)
	}
	r.HTTP.URL = mustParse("/apis/scheduling.k8s.io/v1/priorityclasses?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0")
	if w := e.widthOf(r, names{"exempt", "exempt"}); w.InitialSeats < 3 {
		t.Errorf("a watch that asks for the state: %+v", w)
	}
	list.Verb, list.Resource = "list", "nonsense"
	if w := e.widthOf(r, names{"exempt", "exempt"}); w.InitialSeats != 1 {
		t.Errorf("a list of what is not there: %+v", w)
	}
}

// A new FlowSchema holds for the next requests; one that is gone does not.
func TestFollows(t *testing.T) {
	e := open(t)
	e.limit(long)
	if a := e.ask(ann, get); a.level != e.uid("test") {
		t.Fatalf("%+v", a)
	}
	gone := weak.Make(e.level(ann))
	if err := e.client.FlowSchemas().Delete(t.Context(), "test", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.eventually("a FlowSchema holds that is gone", func() bool { return e.ask(ann, get).level == e.uid("global-default") })
	if err := e.client.PriorityLevelConfigurations().Delete(t.Context(), "test", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.eventually("a level is there that is gone", func() bool { return !strings.Contains(e.page(DebugPaths[0]), "\ntest,") })
	e.eventually("a level is kept that is gone", func() bool {
		e.ask(ann, get)
		runtime.GC()
		return gone.Value() == nil
	})
}

// A request that leaves its seat lets another one in, by both ways, and only one.
func TestLeave(t *testing.T) {
	e := open(t)
	e.limit(long)
	l := e.level(ann)
	end := make(chan struct{})
	var all sync.WaitGroup
	var in atomic.Int64
	for range 4 * testSeats { // most come by the queue
		all.Go(func() {
			r := &Request{HTTP: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Header: http.Header{}, Info: get, User: ann}
			retry := e.Serve(r, func(_ *http.Request, seat Seat) {
				in.Add(1)
				seat.Leave()
				seat.Leave()
				<-end
			})
			if retry != "" {
				t.Error("a request is turned away")
			}
		})
	}
	e.eventually("requests without a seat keep others out", func() bool { return in.Load() == 4*testSeats })
	b := e.block(bob, get, testSeats)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if a := e.serve(ctx, bob, get, func(*http.Request) {}); a.code != http.StatusTooManyRequests {
		t.Errorf("more seats than there are: %+v", a)
	}
	b.release()
	close(end)
	all.Wait()
	e.eventually("seats are still taken", func() bool { return l.seats() == 0 && l.IsIdle() })
}
