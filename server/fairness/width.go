package fairness

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// widthOf is upstream's estimate of how many seats a request takes, and for how long after its end.
func (c *Controller) widthOf(r *Request, n names) fcrequest.WorkEstimate {
	switch r.Info.Verb {
	case "list", "watch", "create", "update", "patch", "delete":
		// Upstream looks for the RequestInfo in the context.
		return c.width(r.HTTP.WithContext(apirequest.WithRequestInfo(r.HTTP.Context(), r.Info)), n.schema, n.level)
	}
	return fcrequest.WorkEstimate{InitialSeats: 1}
}

// stats returns how many objects of a resource there are, and how large they are, for the width of a list.
func (c *Controller) stats(resource string) (storage.Stats, error) {
	gr := schema.ParseGroupResource(resource)
	prefix := ""
	for _, k := range c.o.Kinds.Set().Kinds {
		if k.Group == gr.Group && k.Resource == gr.Resource {
			prefix = k.Prefix() // the same for all versions
			break
		}
	}
	if prefix == "" {
		return storage.Stats{}, fcrequest.ObjectCountNotFoundErr
	}
	view := c.o.Store.Current(prefix)
	from, to := changelog.RangeOf(prefix)
	count, err := view.Count(context.Background(), from, to)
	if err != nil || count == 0 {
		return storage.Stats{}, err
	}
	return storage.Stats{ObjectCount: count, EstimatedAverageObjectSizeBytes: c.sizes.of(view, prefix)}, nil
}

// Upstream estimates sizes once in a minute too. A part of the objects is enough to tell small ones from large ones.
const (
	sizeEvery  = time.Minute
	sizeSample = 200
)

// sizes are the average sizes of objects, by the prefixes of their keys.
type sizes struct{ known sync.Map }

// size is what the objects of a resource had on average at a time.
type size struct {
	bytes int64
	at    time.Time
}

// of returns the average size of the first objects in view. An object that cannot be read does not count.
func (s *sizes) of(view sqlstore.View, prefix string) int64 {
	if known, ok := s.known.Load(prefix); ok && time.Since(known.(size).at) < sizeEvery {
		return known.(size).bytes
	}
	var all, n int64
	from, to := changelog.RangeOf(prefix)
	_ = view.Outline(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		if bytes, known := e.ValueBytes(); known {
			all, n = all+int64(bytes), n+1
		}
		return n < sizeSample
	})
	if n == 0 {
		return 0
	}
	s.known.Store(prefix, size{all / n, time.Now()})
	return all / n
}
