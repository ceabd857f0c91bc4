package server

import (
	"net/http"
	"slices"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/rest"
)

// limit counts the running requests of one kind.
type limit struct {
	kind    string // readOnly or mutating, for metrics
	most    int64
	running atomic.Int64
}

// limits turn requests away when too many run, as kube-apiserver without priority and
// fairness does (apiserver/pkg/server/filters/maxinflight.go).
type limits struct {
	reads, writes limit
}

// of returns the limit that a request counts in, nil for one that may go on for ever.
func (l *limits) of(info *apirequest.RequestInfo) *limit {
	if longRunning(info) {
		return nil
	}
	switch info.Verb {
	case "get", "list":
		return &l.reads
	}
	return &l.writes
}

// enter counts a request in. One that is let in must leave.
func (l *limit) enter(who user.Info) bool {
	if l.running.Add(1) <= l.most || slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return true
	}
	l.running.Add(-1)
	return false
}

func (l *limit) leave() { l.running.Add(-1) }

var errTooMany = &rest.TextError{
	Code: http.StatusTooManyRequests, Text: "Too many requests, please try again later.",
}

// longRunning tells which requests have no end of their own: watches, and those that
// extension servers may have (upstream: kube-apiserver's LongRunningFunc).
func longRunning(info *apirequest.RequestInfo) bool {
	switch info.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return info.Verb == "watch" || info.Verb == "proxy"
}
