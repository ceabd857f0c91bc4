package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/fairness"
)

const flowcontrolPath = "/apis/flowcontrol.apiserver.k8s.io/v1/"

// A small level, and a FlowSchema that brings somebody there.
const (
	smallLevel = `{"metadata":{"name":"small"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":1,"lendablePercent":0,"borrowingLimitPercent":0,` +
		`"limitResponse":{"type":"Queue","queuing":{"queues":1,"handSize":1,"queueLengthLimit":1}}}}}`
	smallSchema = `{"metadata":{"name":"a"},"spec":{"matchingPrecedence":50,"priorityLevelConfiguration":{"name":"small"},` +
		`"rules":[{"subjects":[{"kind":"User","user":{"name":"ann"}}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}}`
)

// smallSeats is the share of the small level: one of 246 shares of 600 seats, rounded up.
const smallSeats = 3

// What somebody asks too much is turned away in upstream's words, and others do not notice.
func TestFairnessFlood(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		end := make(chan struct{})
		held := route("/version/", func(c echo.Context) error { <-end; return c.NoContent(http.StatusOK) })
		s, other := startBoth(t, d, Config{RequestTimeout: 10 * time.Minute}, held)
		client := apitest.Admin(t, other)
		for resource, object := range map[string]string{"prioritylevelconfigurations": smallLevel, "flowschemas": smallSchema} {
			if code, _, body := apitest.Do(t, client, "POST", other.URL()+flowcontrolPath+resource, object); code != http.StatusCreated {
				t.Fatalf("%d %s", code, body)
			}
		}
		client = apitest.Admin(t, s)
		ann := func(path string) (int, http.Header, string) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+path, nil)
			must(t, err)
			r.Header = http.Header{"Impersonate-User": {"ann"}}
			return apitest.Send(t, client, r)
		}
		_, _, level := apitest.Do(t, client, "GET", s.URL()+flowcontrolPath+"prioritylevelconfigurations/small", "")
		apitest.Eventually(t, "the FlowSchema holds", func() bool {
			_, header, _ := ann("/version")
			return strings.Contains(level, header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID))
		})
		slow := make(chan int, smallSeats+1)
		for range smallSeats + 1 {
			go func() { code, _, _ := ann("/version/"); slow <- code }()
		}
		apitest.Eventually(t, "a request waits", func() bool {
			_, _, page := apitest.Do(t, client, "GET", s.URL()+fairness.DebugPaths[0], "")
			return strings.Contains(page, "small,             1,            false,  false,       1,               3,")
		})
		code, header, body := ann("/version")
		if code != http.StatusTooManyRequests || body != "Too many requests, please try again later.\n" || header.Get("Retry-After") != "1" ||
			header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(level, header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)) {
			t.Errorf("a request too many: %d %v %q", code, header, body)
		}
		begun := time.Now()
		if code, _, body := apitest.Do(t, client, "GET", s.URL()+"/api/v1/namespaces", ""); code != 200 || time.Since(begun) > time.Minute {
			t.Errorf("admin: %d after %v: %s", code, time.Since(begun), body)
		}
		_, _, metrics := apitest.Do(t, client, "GET", s.URL()+"/metrics", "")
		if !strings.Contains(metrics, `apiserver_flowcontrol_current_executing_requests{flow_schema="a",priority_level="small"} 3`) {
			t.Error("the metrics do not count what runs")
		}
		close(end)
		for range smallSeats + 1 {
			if code := <-slow; code != 200 {
				t.Errorf("a request with a seat: %d", code)
			}
		}
	})
}

// Without priority and fairness there are no headers, no pages and no metrics of it, and the limits
// hold for reads and writes.
func TestNoFairness(t *testing.T) {
	s := start(t, Config{NoFairness: true})
	client := apitest.Admin(t, s)
	_, header, _ := apitest.Do(t, client, "GET", s.URL()+"/version", "")
	for name := range header {
		if strings.HasPrefix(name, "X-Kubernetes") {
			t.Errorf("header %s", name)
		}
	}
	if code, _, _ := apitest.Do(t, client, "GET", s.URL()+fairness.DebugPaths[0], ""); code != 404 {
		t.Errorf("debug page: %d", code)
	}
	if _, _, body := apitest.Do(t, client, "GET", s.URL()+"/metrics", ""); strings.Contains(body, "apiserver_flowcontrol") {
		t.Error("metrics of priority and fairness")
	}
}

// A reader who does not read a debug page holds nobody up: upstream writes it with a lock held.
func TestFairnessDebug(t *testing.T) {
	s := start(t, Config{})
	client := apitest.Admin(t, s)
	for path, columns := range map[string]string{
		fairness.DebugPaths[0]: "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests",
		fairness.DebugPaths[1]: "PriorityLevelName, Index,        PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR,   InitialSeatsSum, MaxSeatsSum, TotalWorkSum",
		fairness.DebugPaths[2]: "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime,                     InitialSeats, FinalSeats, AdditionalLatency, StartTime",
	} {
		code, _, body := apitest.Do(t, client, "GET", s.URL()+path, "")
		if first, _, _ := strings.Cut(body, "\n"); code != 200 || strings.Join(strings.Fields(first), " ") != strings.Join(strings.Fields(columns), " ") {
			t.Errorf("%s: %d %s", path, code, first)
		}
	}
	stuck, read := &stuckWriter{ResponseRecorder: httptest.NewRecorder(), free: make(chan struct{})}, make(chan struct{})
	go func() {
		s.fairness.Debug().ServeHTTP(stuck, httptest.NewRequest("GET", fairness.DebugPaths[1], nil))
		close(read)
	}()
	for i := range 20 { // each is a question that is not remembered, so that it needs the lock
		if code, _, body := apitest.Do(t, client, "GET", fmt.Sprintf("%s/nowhere/%d", s.URL(), i), ""); code != 404 {
			t.Errorf("%d %s", code, body)
		}
	}
	close(stuck.free)
	<-read
}

type stuckWriter struct {
	*httptest.ResponseRecorder
	free chan struct{}
}

func (w *stuckWriter) Write(b []byte) (int, error) { <-w.free; return w.ResponseRecorder.Write(b) }

// The metrics are called as upstream's.
func TestFairnessMetrics(t *testing.T) {
	s := start(t, Config{})
	client, body := apitest.Admin(t, s), ""
	apitest.Eventually(t, "this request alone runs", func() bool { // the server's own look after its objects now and then
		_, _, body = apitest.Do(t, client, "GET", s.URL()+"/metrics", "")
		return strings.Contains(body, `apiserver_flowcontrol_current_executing_requests{flow_schema="exempt",priority_level="exempt"} 1`+"\n")
	})
	for _, want := range []string{
		`apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"}`,
		`apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"}`,
		`apiserver_flowcontrol_request_execution_seconds_count{flow_schema="exempt",priority_level="exempt",type="regular"}`,
		`apiserver_flowcontrol_priority_level_seat_utilization_count{phase="executing",priority_level="exempt"}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, "apiserver_flowcontrol_request_concurrency_limit") {
		t.Error("a metric that kube-apiserver does not show any more")
	}
}
