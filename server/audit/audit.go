// Package audit keeps the audit log: who asked for what, and what came of it, one event for
// each stage of a request. Policy, events and where they go are upstream's; see
// https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
)

// Options are kube-apiserver's --audit flags, in upstream's type.
type Options = options.AuditOptions

// NewOptions returns the defaults, by which nothing is logged.
func NewOptions() *Options { return options.NewAuditOptions() }

// Check finds what is wrong with options without any I/O.
func Check(o *Options) error { return utilerrors.NewAggregate(o.Validate()) }

// Log is an open audit log. It must be closed, after the last request.
type Log struct {
	backend     audit.Backend
	policy      audit.PolicyRuleEvaluator
	longRunning func(*apirequest.RequestInfo) bool
	stop        chan struct{} // closed by Close

	events, rejected prometheus.Counter
}

// Open reads the policy, makes the file and starts what sends events. It returns nil if the
// options log nothing: they name no policy, or nowhere to write to. longRunning tells which
// requests have an event of their own when their answer begins.
func Open(o *Options, longRunning func(*apirequest.RequestInfo) bool) (*Log, error) {
	if o == nil {
		return nil, nil
	}
	var made genericserver.Config
	if err := o.ApplyTo(&made); err != nil {
		return nil, err
	}
	if made.AuditBackend == nil || made.AuditPolicyRuleEvaluator == nil {
		return nil, nil
	}
	l := &Log{
		backend:     made.AuditBackend,
		policy:      made.AuditPolicyRuleEvaluator,
		longRunning: longRunning,
		stop:        make(chan struct{}),
		events:      newCounter("event_total", "Audit events that were made."),
		rejected:    newCounter("requests_rejected_total", "Requests that were refused because their audit event could not be stored."),
	}
	if err := l.backend.Run(l.stop); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.backend, err)
	}
	return l, nil
}

// closeGrace is how long events have to get out when the time to stop is over already.
const closeGrace = time.Second

// errLost is about a webhook that did not take its events in time.
var errLost = errors.New("audit events that were still waiting to be sent are lost")

// Close sends what is waiting to be sent, for as long as ctx allows. A nil Log has nothing.
func (l *Log) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	close(l.stop)
	sent := make(chan struct{})
	go func() { l.backend.Shutdown(); close(sent) }()
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-sent:
		return nil
	case <-time.After(closeGrace):
		return errLost
	}
}

// Begin returns the request with what upstream's filters and its libraries look for in a
// context: a place for the event, whose id is the answer's Audit-Id.
func Begin(r *http.Request, info *apirequest.RequestInfo, id string) *http.Request {
	ctx := audit.WithAuditContext(r.Context())
	audit.WithAuditID(ctx, types.UID(id))
	ctx = apirequest.WithReceivedTimestamp(ctx, time.Now())
	ctx = apirequest.WithLatencyTrackers(ctx) // of webhooks, which annotate what takes long
	return r.WithContext(apirequest.WithRequestInfo(ctx, info))
}
