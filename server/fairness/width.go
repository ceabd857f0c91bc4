package fairness

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/plinth-io/plinth/sqlstore"
)

// widthOf is upstream's estimate of how many seats a request takes, and for how long after its end.
func (c *Controller) widthOf(r *Request, n names) fcrequest.WorkEstimate {
	info := r.Info
	switch info.Verb {
	case "list", "create", "update", "patch", "delete":
	case "watch":
		if !strings.Contains(r.HTTP.URL.RawQuery, "sendInitialEvents=") {
			return fcrequest.WorkEstimate{InitialSeats: 1}
		}
		// Upstream does so if the feature WatchList is on; the state is sent here in any case.
		list := *info
		list.Verb = "list"
		info = &list
	default:
		return fcrequest.WorkEstimate{InitialSeats: 1}
	}
	// Upstream looks for the RequestInfo in the context.
	return c.width(r.HTTP.WithContext(apirequest.WithRequestInfo(r.HTTP.Context(), info)), n.schema, n.level)
}

// count returns how many objects of a resource there are, for the width of a list.
func (c *Controller) count(resource string) (int64, error) {
	gr := schema.ParseGroupResource(resource)
	prefix := ""
	for _, k := range c.o.Kinds.Set().Kinds {
		if k.Group == gr.Group && k.Resource == gr.Resource {
			prefix = k.Prefix() // the same for all versions
			break
		}
	}
	if prefix == "" {
		return 0, fcrequest.ObjectCountNotFoundErr
	}
	from, to := sqlstore.RangeOf(prefix)
	return c.o.Store.Current(prefix).Count(context.Background(), from, to)
}
