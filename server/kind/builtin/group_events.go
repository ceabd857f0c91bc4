package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/core/event"

	"github.com/plinth-io/plinth/server/kind"
)

// eventsKinds serves the core group's events under a second group. The objects are the same and
// are stored as core/v1.
func eventsKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "events.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "events", Singular: "event", Kind: "Event",
			ShortNames: []string{"ev"},
			Namespaced: true,
			Create:     event.Strategy, Update: event.Strategy, Delete: event.Strategy,
			Attrs:      event.GetAttrs,
			Attributes: eventAttributes,
			Uncached:   true,
			Stored:     kind.Stored{Group: "", Resource: "events", Version: "v1"},
		},
	)
}
