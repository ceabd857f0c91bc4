package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// The stages of a request are upstream's (endpoints/filters/audit.go). Upstream's own filter is not used: it takes the
// user from the request's context and answers by itself when an event cannot be stored.

// exchange is one request that is logged.
type exchange struct {
	ctx   context.Context
	event *apiaudit.AuditContext
	early bool // the request has the stage ResponseStarted

	out writer
}

// ErrNotStored says that a request must not be served: its event could not be stored, and the
// mode is blocking-strict.
var ErrNotStored = errors.New("failed to store audit event")

// Serve logs a request that Begin has prepared. what are its attributes; answer writes the
// answer. If the error is ErrNotStored, nothing was written.
func (l *Log) Serve(w http.ResponseWriter, r *http.Request, what authorizer.Attributes, answer func(http.ResponseWriter)) error {
	x := l.begin(r, what)
	if x == nil {
		answer(w)
		return nil
	}
	if !x.logStage(auditinternal.StageRequestReceived) {
		apiaudit.ApiserverAuditDroppedCounter.WithContext(x.ctx).Inc()
		return ErrNotStored
	}
	info, _ := apirequest.RequestInfoFrom(x.ctx)
	x.early = l.longRunning(info)
	defer x.end()
	answer(x.writer(w))
	return nil
}

// Refuse logs a request that is refused before its user is known. It has one event.
func (l *Log) Refuse(w http.ResponseWriter, r *http.Request, what authorizer.Attributes, answer func(http.ResponseWriter)) {
	x := l.begin(r, what)
	if x == nil {
		answer(w)
		return
	}
	x.early = true
	answer(x.writer(w))
}

// begin asks the policy; it returns nil if the request is not to be logged.
func (l *Log) begin(r *http.Request, what authorizer.Attributes) *exchange {
	ctx := r.Context()
	ac := apiaudit.AuditContextFrom(ctx)
	rule := l.policy.EvaluatePolicyRule(what)
	apiaudit.ObservePolicyLevel(ctx, rule.Level)
	var sink apiaudit.Sink = l.backend
	if rule.OmitManagedFields {
		sink = omitting{sink}
	}
	if err := ac.Init(rule, sink); err != nil || rule.Level == auditinternal.LevelNone {
		return nil // a request is logged once
	}
	received, _ := apirequest.ReceivedTimestampFrom(ctx)
	apiaudit.LogRequestMetadata(ctx, r, received, what)
	return &exchange{ctx: ctx, event: ac}
}

// logStage logs the event of a stage. It returns false if the mode demands that the event is
// stored and it was not.
func (x *exchange) logStage(stage auditinternal.Stage) bool {
	return x.event.ProcessEventStage(x.ctx, stage)
}

// begun notes the status code with which the answer begins.
func (x *exchange) begun(code int) {
	x.event.SetEventResponseStatusCode(int32(code))
	if x.early {
		x.logStage(auditinternal.StageResponseStarted)
	}
}

// end is deferred around the answer. It logs a panic and lets it go on.
func (x *exchange) end() {
	if reason := recover(); reason != nil {
		x.event.SetEventResponseStatus(&metav1.Status{
			Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("APIServer panic'd: %v", reason),
		})
		x.logStage(auditinternal.StagePanic)
		panic(reason)
	}
	if x.event.GetEventResponseStatus() == nil {
		x.event.SetEventResponseStatus(&metav1.Status{Code: http.StatusOK, Status: metav1.StatusSuccess, Message: "Connection closed early"})
		if x.early {
			x.logStage(auditinternal.StageResponseStarted)
		}
	}
	x.noteLatency()
	x.logStage(auditinternal.StageResponseComplete)
}

// slow is the duration above which the event of a request says where the time went.
const slow = 500 * time.Millisecond

func (x *exchange) noteLatency() {
	took := time.Since(x.event.GetEventRequestReceivedTimestamp().Time)
	if took <= slow {
		return
	}
	if notes := apirequest.AuditAnnotationsFromLatencyTrackers(x.ctx); len(notes) > 0 {
		notes["apiserver.latency.k8s.io/total"] = took.String()
		apiaudit.AddAuditAnnotationsMap(x.ctx, notes)
	}
}

// writer notices when an answer begins.
type writer struct {
	http.ResponseWriter
	x    *exchange
	once sync.Once
}

func (x *exchange) writer(w http.ResponseWriter) http.ResponseWriter {
	x.out.ResponseWriter, x.out.x = w, x
	return &x.out
}

func (w *writer) begin(code int) { w.once.Do(func() { w.x.begun(code) }) }

func (w *writer) WriteHeader(code int) {
	w.begin(code)
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Hijack implements http.Hijacker, for connections that are handed on.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.begin(http.StatusSwitchingProtocols)
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap gives http.ResponseController the other methods of the writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
