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
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// The stages of a request are upstream's (endpoints/filters/audit.go). Upstream's own filter
// is not used: it counts events with a data race between requests.

// exchange is one request that is logged.
type exchange struct {
	log   *Log
	ctx   context.Context
	event *auditinternal.Event
	omit  []auditinternal.Stage
	early bool // the request has the stage ResponseStarted

	out    writer
	status metav1.Status // of the answer
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
	if !x.reach(auditinternal.StageRequestReceived) {
		l.rejected.Inc()
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
	ac.RequestAuditConfig = l.policy.EvaluatePolicyRule(what)
	level := ac.RequestAuditConfig.Level
	apiaudit.ObservePolicyLevel(ctx, level)
	if level == auditinternal.LevelNone {
		return nil
	}
	received, _ := apirequest.ReceivedTimestampFrom(ctx)
	apiaudit.LogRequestMetadata(ctx, r, received, level, what)
	return &exchange{log: l, ctx: ctx, event: &ac.Event, omit: ac.RequestAuditConfig.OmitStages}
}

// reach logs the event of a stage. It returns false if the mode demands that the event is
// stored and it was not.
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

// begun notes the status code with which the answer begins.
func (x *exchange) begun(code int) {
	if x.event.ResponseStatus == nil {
		x.event.ResponseStatus = &x.status
	}
	x.event.ResponseStatus.Code = int32(code)
	x.event.Stage = auditinternal.StageResponseStarted
	if x.early {
		x.reach(auditinternal.StageResponseStarted)
	}
}

// end is deferred around the answer. It logs a panic and lets it go on.
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

// slow is the duration above which the event of a request says where the time went.
const slow = 500 * time.Millisecond

func (x *exchange) noteLatency() {
	took := x.event.StageTimestamp.Sub(x.event.RequestReceivedTimestamp.Time)
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
