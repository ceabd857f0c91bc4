package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// The stages of a request are upstream's (endpoints/filters/audit.go). Its own filter counts
// events in a way that two requests race for.

// exchange is one request that is logged.
type exchange struct {
	log   *Log
	ctx   context.Context
	event *auditinternal.Event
	omit  []auditinternal.Stage
	early bool // there is an event when the answer begins
}

// ErrNotStored says that a request must not be served, because its event could not be stored
// and the mode is blocking-strict.
var ErrNotStored = errors.New("failed to store audit event")

// Serve logs a request, which Begin has prepared and which asks for what, while answer
// answers it by writing to what it is given. After ErrNotStored nothing has been answered.
func (l *Log) Serve(w http.ResponseWriter, r *http.Request, what authorizer.Attributes, answer func(http.ResponseWriter)) error {
	x := l.begin(r, what)
	if x == nil {
		answer(w)
		return nil
	}
	if !x.reach(auditinternal.StageRequestReceived) {
		l.rejected.Inc()
		return ErrNotStored
	}
	info, _ := apirequest.RequestInfoFrom(x.ctx)
	x.early = l.longRunning(info)
	defer x.end()
	answer(&writer{ResponseWriter: w, x: x})
	return nil
}

// Refuse logs a request that answer refuses before it is known whose it is. It has one event.
func (l *Log) Refuse(w http.ResponseWriter, r *http.Request, what authorizer.Attributes, answer func(http.ResponseWriter)) {
	x := l.begin(r, what)
	if x == nil {
		answer(w)
		return
	}
	x.early = true
	answer(&writer{ResponseWriter: w, x: x})
}

// begin asks the policy; nil if it wants nothing of the request.
func (l *Log) begin(r *http.Request, what authorizer.Attributes) *exchange {
	ctx := r.Context()
	ac := audit.AuditContextFrom(ctx)
	ac.RequestAuditConfig = l.policy.EvaluatePolicyRule(what)
	level := ac.RequestAuditConfig.Level
	audit.ObservePolicyLevel(ctx, level)
	if level == auditinternal.LevelNone {
		return nil
	}
	received, _ := apirequest.ReceivedTimestampFrom(ctx)
	audit.LogRequestMetadata(ctx, r, received, level, what)
	return &exchange{log: l, ctx: ctx, event: &ac.Event, omit: ac.RequestAuditConfig.OmitStages}
}

// reach logs the event of a stage, and tells whether it was stored where that counts.
func (x *exchange) reach(stage auditinternal.Stage) bool {
	x.event.Stage = stage
	if slices.Contains(x.omit, stage) {
		return true
	}
	x.event.StageTimestamp = metav1.NewMicroTime(time.Now())
	switch stage {
	case auditinternal.StageRequestReceived:
		x.event.StageTimestamp = x.event.RequestReceivedTimestamp
	case auditinternal.StageResponseComplete:
		x.noteLatency()
	}
	x.log.events.Inc()
	return x.log.backend.ProcessEvents(x.event)
}

// begun notes the code of the answer, which begins with it.
func (x *exchange) begun(code int) {
	if x.event.ResponseStatus == nil {
		x.event.ResponseStatus = &metav1.Status{}
	}
	x.event.ResponseStatus.Code = int32(code)
	x.event.Stage = auditinternal.StageResponseStarted
	if x.early {
		x.reach(auditinternal.StageResponseStarted)
	}
}

// end is deferred by who answers; a panic goes on.
func (x *exchange) end() {
	if reason := recover(); reason != nil {
		x.event.ResponseStatus = &metav1.Status{
			Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("APIServer panic'd: %v", reason),
		}
		x.reach(auditinternal.StagePanic)
		panic(reason)
	}
	if x.event.ResponseStatus == nil {
		x.event.ResponseStatus = &metav1.Status{Code: http.StatusOK, Status: metav1.StatusSuccess, Message: "Connection closed early"}
		if x.early {
			x.reach(auditinternal.StageResponseStarted)
		}
	}
	x.reach(auditinternal.StageResponseComplete)
}

// slow is how long a request takes that says where the time went.
const slow = 500 * time.Millisecond

func (x *exchange) noteLatency() {
	took := x.event.StageTimestamp.Sub(x.event.RequestReceivedTimestamp.Time)
	if took <= slow {
		return
	}
	if notes := apirequest.AuditAnnotationsFromLatencyTrackers(x.ctx); len(notes) > 0 {
		notes["apiserver.latency.k8s.io/total"] = took.String()
		audit.AddAuditAnnotationsMap(x.ctx, notes)
	}
}

// writer sees an answer begin.
type writer struct {
	http.ResponseWriter
	x    *exchange
	once sync.Once
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

// Unwrap gives http.ResponseController the rest.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
