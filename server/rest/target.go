package rest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
)

// target is what a call is about: a collection, an object or a subresource, in a version. A call
// may work on several targets, as the deletion of a collection does.
type target struct {
	kind      *kind.Kind
	version   string
	sub       *kind.Subresource // nil for the object itself
	namespace string            // empty for cluster-scoped resources and all namespaces
	name      string            // empty for a collection
}

func (t *target) groupResource() schema.GroupResource { return t.kind.GroupResource() }

func (t *target) gvr() schema.GroupVersionResource {
	return t.groupResource().WithVersion(t.version)
}

// gvk is the kind of the object, or of the subresource's body if that is of another kind.
func (t *target) gvk() schema.GroupVersionKind {
	if t.sub != nil && !t.sub.GVK.Empty() {
		return t.sub.GVK
	}
	return t.kind.GVK(t.version)
}

func (t *target) key() string { return t.kind.Key(t.namespace, t.name) }

// subresource is the subresource's name, empty for the object itself.
func (t *target) subresource() string {
	if t.sub == nil {
		return ""
	}
	return t.sub.Name
}

// codec is the codec of bodies.
func (t *target) codec() kind.Codec {
	if t.sub != nil && t.sub.Codec != nil {
		return t.sub.Codec
	}
	return t.kind.Codec
}

// can tells whether the resource, or the subresource asked for, has the verb.
func (t *target) can(verb string) bool {
	if t.sub != nil {
		return t.sub.Can(verb) || verb == "connect"
	}
	return t.kind.Can(verb)
}

// connects tells whether requests are handed on to the subresource's own handler.
func (t *target) connects() bool { return t.sub != nil && t.sub.Connect != nil }

// hasView tells whether the subresource has a body of its own, made from the object.
func (t *target) hasView() bool { return t.sub != nil && t.sub.View != nil }

// cached tells whether upstream has a watch cache for the resource. From that it answers lists at
// resourceVersion 0, and then ignores their limit.
func (t *target) cached() bool { return !t.kind.Uncached }
