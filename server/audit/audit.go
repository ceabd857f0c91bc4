// Package audit keeps the audit log: who asked for what, and what came of it, one event for
// each stage of a request. See https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
//
// It owns the id of each request and the order of its events. Policy, events and backends are
// upstream's. It must not know what requests do: package guard hands it each request, and the
// libraries below annotate the event in the request's context.
package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	apiaudit "k8s.io/apiserver/pkg/audit"
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

// LacksPolicy tells whether o says where to log and not what.
func LacksPolicy(o *Options) bool {
	return o != nil && o.PolicyFile == "" && (o.LogOptions.Path != "" || o.WebhookOptions.ConfigFile != "")
}

// Log is an open audit log. It must be closed, after the last request.
type Log struct {
	backend     apiaudit.Backend
	policy      apiaudit.PolicyRuleEvaluator
	longRunning func(*apirequest.RequestInfo) bool
	stop        chan struct{} // closed by Close
}

// Open reads the policy, makes the file and starts to send events. It returns nil if the
// options log nothing: they lack a policy, or a place to write to. longRunning tells which
// requests have the stage ResponseStarted.
func Open(o *Options, longRunning func(*apirequest.RequestInfo) bool) (*Log, error) {
	if o == nil {
		return nil, nil
	}
	backend, policy, err := open(o)
	if backend == nil || err != nil {
		return nil, err
	}
	l := &Log{
		backend:     backend,
		policy:      policy,
		longRunning: longRunning,
		stop:        make(chan struct{}),
	}
	if err := l.backend.Run(l.stop); err != nil {
		return nil, fmt.Errorf("start %s: %w", l.backend, err)
	}
	return l, nil
}

// open makes what o asks for. The backend is nil if there is nothing to log, or nowhere.
func open(o *Options) (apiaudit.Backend, apiaudit.PolicyRuleEvaluator, error) {
	var made genericserver.Config
	if err := o.ApplyTo(&made); err != nil {
		return nil, nil, err
	}
	if made.AuditBackend == nil || made.AuditPolicyRuleEvaluator == nil {
		return nil, nil, nil
	}
	own, err := ownFile(&o.LogOptions)
	if own == nil || err != nil {
		return made.AuditBackend, made.AuditPolicyRuleEvaluator, err
	}
	if o.WebhookOptions.ConfigFile == "" {
		return own, made.AuditPolicyRuleEvaluator, nil
	}
	rest := *o
	rest.LogOptions.Path = ""
	made = genericserver.Config{}
	if err := rest.ApplyTo(&made); err != nil {
		return nil, nil, err
	}
	return apiaudit.Union(own, made.AuditBackend), made.AuditPolicyRuleEvaluator, nil
}

// closeGrace is how long Close waits for events to be sent after its context has ended.
const closeGrace = time.Second

// errLost says that a webhook did not take its events in time.
var errLost = errors.New("audit events that were still waiting to be sent are lost")

// Close sends the events that wait to be sent, for as long as ctx allows. A nil Log has none.
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

// readOnly are the verbs of requests about which no webhook is asked.
var readOnly = map[string]bool{"get": true, "list": true, "watch": true}

// Begin returns the context of a request with what upstream's filters and libraries look for in
// it: a place for the event, whose id is the one that Identify has put into answer.
func Begin(ctx context.Context, info *apirequest.RequestInfo, answer http.Header) context.Context {
	ctx = apiaudit.WithAuditContext(ctx)
	apiaudit.WithAuditID(ctx, types.UID(answer.Get(idHeader)))
	ctx = apirequest.WithReceivedTimestamp(ctx, time.Now())
	if !readOnly[info.Verb] {
		ctx = apirequest.WithLatencyTrackers(ctx) // of webhooks, which annotate what takes long
	}
	return apirequest.WithRequestInfo(ctx, info)
}

// UpstreamMetrics are counters of upstream's libraries: events, requests by level, events that were lost, and requests
// that were refused because their event could not be stored. They count all servers in the process.
var UpstreamMetrics = []string{
	"apiserver_audit_event_total", "apiserver_audit_level_total", "apiserver_audit_error_total",
	"apiserver_audit_requests_rejected_total",
}
