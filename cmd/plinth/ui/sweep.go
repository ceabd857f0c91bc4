package ui

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// swept is the metadata of the objects of a kind, or why it could not be read.
type swept struct {
	Kind  past.Served
	Items []metav1.PartialObjectMetadata
	Total int  // of what there is, as far as the server says
	More  bool // not all was read
	Err   error
}

// Reason is why the kind could not be read.
func (s swept) Reason() string { return explain(s.Err).Text }

const (
	sweepAtOnce = 8    // kinds
	sweepPage   = 500  // objects in an answer
	sweepMost   = 5000 // objects of a kind
)

// asMetadata asks the API for what objects have in common, and no more.
const asMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io, application/json"

// unsweepable are kinds whose objects nobody looks for by name, or that are there under another name too.
var unsweepable = []string{"events", "events.events.k8s.io", "componentstatuses"}

// sweepable returns the kinds whose objects are looked through: in a namespace, or all.
func (c *connection) sweepable(namespaced bool) ([]past.Served, error) {
	kinds, err := c.served()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k past.Served) bool {
		return slices.Contains(unsweepable, k.Name()) || namespaced && !k.Namespaced
	}), nil
}

// sweep lists the metadata of the objects of several kinds, some kinds at once: in a namespace or in all, of each kind
// at most so many objects.
func (c *connection) sweep(ctx context.Context, kinds []past.Served, namespace string, most int) []swept {
	all := make([]swept, len(kinds))
	var group errgroup.Group
	group.SetLimit(sweepAtOnce)
	for i, kind := range kinds {
		group.Go(func() error {
			all[i] = c.sweepKind(ctx, kind, namespace, most)
			return nil
		})
	}
	_ = group.Wait()
	return all
}

// sweepKind lists the metadata of the objects of one kind.
func (c *connection) sweepKind(ctx context.Context, kind past.Served, namespace string, most int) swept {
	s := swept{Kind: kind}
	next := ""
	for {
		var list metav1.PartialObjectMetadataList
		request := c.rest.Get().AbsPath(pathOf(kind.In(namespace, ""))...).SetHeader("Accept", asMetadata).Param("limit", strconv.Itoa(min(sweepPage, most)))
		if next != "" {
			request = request.Param("continue", next)
		}
		if s.Err = decode(request.Do(ctx), &list); s.Err != nil {
			return s
		}
		for i := range list.Items {
			list.Items[i].ManagedFields, list.Items[i].Annotations = nil, nil // which take the most, and nobody looks at
		}
		s.Items = append(s.Items, list.Items...)
		s.Total = len(s.Items)
		if list.RemainingItemCount != nil {
			s.Total += int(*list.RemainingItemCount)
		}
		if next = list.Continue; next == "" || len(s.Items) >= most {
			s.More = next != ""
			return s
		}
	}
}
