package guard

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/response"
)

// Limits bound requests.
type Limits struct {
	Timeout       time.Duration // of a request that is not long-running
	Reads, Writes int           // that may run at once
	Connections   int           // that may be open at once; 0: any number
	GoAway        float64       // chance of a request to end its connection, for HTTP/2

	// How many requests of one user, and how many of their bytes, may wait for a client to send the body, and as many
	// for a client to read the answer. All users together may hold four times as much.
	SlowCalls int   // 256
	SlowBytes int64 // 16 MiB
	Body      int64 // bytes of a body; more is for the handler to refuse; 3 MiB
}

func (l Limits) withDefaults() Limits {
	if l.SlowCalls == 0 {
		l.SlowCalls = 256
	}
	if l.SlowBytes == 0 {
		l.SlowBytes = 16 << 20
	}
	if l.Body == 0 {
		l.Body = response.MaxBody
	}
	return l
}

// sendsAway tells whether a client is told to open a new connection after this request, so that
// load balancers can spread the clients anew.
func (l *Limits) sendsAway(r *http.Request) bool {
	return l.GoAway > 0 && r.ProtoMajor == 2 && rand.Float64() < l.GoAway
}

// limit counts the running requests of one kind.
type limit struct {
	kind    string // readOnly or mutating, for metrics
	most    int64
	running atomic.Int64
}

// inflight turns requests away when too many run, as kube-apiserver without priority and
// fairness does (apiserver/pkg/server/filters/maxinflight.go).
type inflight struct {
	reads, writes limit
}

func newInflight(l Limits) inflight {
	return inflight{
		reads:  limit{kind: "readOnly", most: int64(l.Reads)},
		writes: limit{kind: "mutating", most: int64(l.Writes)},
	}
}

// of returns the limit that a request counts in, nil for a long-running request.
func (l *inflight) of(info *apirequest.RequestInfo) *limit {
	if LongRunning(info) {
		return nil
	}
	switch info.Verb {
	case "get", "list":
		return &l.reads
	}
	return &l.writes
}

// enter counts a request in, and tells whether it may run. A request that may must leave.
func (l *limit) enter(who user.Info) bool {
	if l.running.Add(1) <= l.most || slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return true
	}
	l.running.Add(-1)
	return false
}

func (l *limit) leave() { l.running.Add(-1) }

// LongRunning tells which requests have no end of their own: watches, what takes a
// connection over, and backups, which take as long as there is data (upstream: kube-apiserver's LongRunningFunc).
func LongRunning(info *apirequest.RequestInfo) bool {
	switch info.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return info.Verb == "watch" || info.Verb == "proxy" || !info.IsResourceRequest && (strings.HasPrefix(info.Path, "/debug/pprof/") || info.Path == backups.Path)
}
