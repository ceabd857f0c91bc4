package authn

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// counts are upstream's metrics (apiserver/pkg/endpoints/filters/metrics.go), of one server.
type counts struct {
	users    *prometheus.CounterVec
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
	lifetime prometheus.Histogram // that client certificates have left

	succeeded outcome
}

// outcome has the counters of one result.
type outcome struct {
	attempts prometheus.Counter
	duration prometheus.Observer
}

func newCounts() counts {
	result := []string{"result"}
	c := counts{
		users: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authenticated_user_requests",
			Help: "Counter of authenticated requests broken out by username.",
		}, []string{"username"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authentication_attempts",
			Help: "Counter of authenticated attempts.",
		}, result),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "authentication_duration_seconds",
			Help:    "Authentication duration in seconds broken out by result.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, result),
	}
	c.lifetime = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "apiserver_client_certificate_expiration_seconds",
		Help: "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
		Buckets: []float64{ // half an hour to a year (upstream: authentication/request/x509/x509.go)
			0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000,
		},
	})
	c.succeeded = c.outcome("success")
	return c
}

func (c *counts) outcome(result string) outcome {
	return outcome{c.attempts.WithLabelValues(result), c.duration.WithLabelValues(result)}
}

// Collectors returns the metrics of a.
func (a *Authenticator) Collectors() []prometheus.Collector {
	return []prometheus.Collector{a.counts.users, a.counts.attempts, a.counts.duration, a.counts.lifetime}
}

// UpstreamMetrics are counters of upstream's libraries. They count all servers in the process.
var UpstreamMetrics = []string{
	"authentication_token_cache_active_fetch_count",
	"authentication_token_cache_fetch_total",
	"authentication_token_cache_request_duration_seconds",
	"authentication_token_cache_request_total",
	"apiserver_authentication_config_controller_automatic_reloads_total",
	"apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
	"apiserver_authentication_config_controller_last_config_info",
	"apiserver_authentication_jwt_authenticator_latency_seconds",
	"apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
	"apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
}

// add counts a request that was not answered from memory.
func (c *counts) add(response *authenticator.Response, ok bool, err error, took time.Duration) {
	o := c.succeeded
	switch {
	case err != nil:
		o = c.outcome("error")
	case !ok:
		o = c.outcome("failure")
	default:
		c.of(response.User).Inc()
	}
	o.attempts.Inc()
	o.duration.Observe(took.Seconds())
}

// of returns the counter of a user, by upstream's few categories.
func (c *counts) of(who user.Info) prometheus.Counter {
	name := who.GetName()
	switch {
	case name == "admin", name == "client", name == "kube_proxy", name == "kubelet", name == "system:serviceaccount:kube-system:default":
	case strings.Contains(name, "@"):
		name = "email_id"
	default:
		name = "other"
	}
	return c.users.WithLabelValues(name)
}

// remembered counts requests of one connection, whose client was verified before. They take no
// time that is worth a look at the clock.
type remembered struct {
	user prometheus.Counter
	outcome
}

func (r *remembered) inc() {
	r.user.Inc()
	r.attempts.Inc()
	r.duration.Observe(0)
}
