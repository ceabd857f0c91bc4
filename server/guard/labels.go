package guard

import (
	"strings"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/metrics"
)

// labels are the metric labels of a request. Only names that the server itself knows go
// in: a client that makes up paths must not make up series.
func (g *Guard) labels(x *Call) metrics.Labels {
	l := metrics.Labels{Verb: "other"}
	info := x.Info
	if info == nil {
		return l
	}
	l.Verb = verbLabel(x.Request().Method, info.Verb)
	if !info.IsResourceRequest {
		l.Subresource = x.Path()
		return l
	}
	k := g.kinds.Lookup(info.APIGroup, info.APIVersion, info.Resource)
	if k == nil {
		return l
	}
	l.Group, l.Version, l.Resource, l.Scope = info.APIGroup, info.APIVersion, info.Resource, scopeLabel(info)
	if sub := k.Subresources[info.Subresource]; sub != nil {
		l.Subresource = info.Subresource
		if sub.Connect != nil || sub.Stream != nil {
			l.Verb = "CONNECT"
		}
	}
	if strings.Contains(x.Request().URL.RawQuery, "dryRun=All") {
		l.DryRun = "All"
	}
	return l
}

// verbLabel is upstream's: the HTTP method, with reads told apart.
func verbLabel(method, verb string) string {
	switch verb {
	case "list":
		return "LIST"
	case "watch":
		return "WATCH"
	}
	switch method {
	case "GET", "HEAD":
		return "GET"
	case "POST", "PUT", "PATCH", "DELETE":
		return method
	}
	return "other"
}

func scopeLabel(info *apirequest.RequestInfo) string {
	switch {
	case info.Name != "" || info.Verb == "create":
		return "resource"
	case info.Namespace != "":
		return "namespace"
	}
	return "cluster"
}
