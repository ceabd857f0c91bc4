package builtin

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/storage"
)

// attach gives Kinds what upstream's registries do with the objects in o.Store: what takes
// more than one object, or somebody else than the database. It returns the Kinds that there
// are for this alone.
func attach(kinds []*kind.Kind, o Options) []*kind.Kind {
	a := attaching{Options: o, getter: storage.New(o.Store, kinds), kinds: map[string]*kind.Kind{}}
	for _, k := range kinds {
		a.kinds[k.GroupResource().String()] = k
	}
	for _, step := range []func() error{a.pods, a.tokens, a.services} {
		if err := step(); err != nil {
			panic(fmt.Sprintf("attach upstream's registries: %v", err)) // a Kind is missing: every test would fail
		}
	}
	return a.more
}

// attaching is the state of attach.
type attaching struct {
	Options
	getter *storage.Getter
	kinds  map[string]*kind.Kind // by resource, with its group: "pods", "deployments.apps"
	more   []*kind.Kind
}

// add gives a Kind one more subresource.
func add(k *kind.Kind, sub *kind.Subresource) {
	if k.Subresources == nil {
		k.Subresources = map[string]*kind.Subresource{}
	}
	k.Subresources[sub.Name] = sub
}

// verbOf are discovery's verbs for methods; it has none for HEAD and OPTIONS.
var verbOf = map[string]string{"DELETE": "delete", "GET": "get", "PATCH": "patch", "POST": "create", "PUT": "update"}

// addConnect gives a Kind a subresource that leads elsewhere; options is the kind of its
// parameters.
func addConnect(k *kind.Kind, name, options string, to rest.Connecter) {
	gvk := k.GVK(k.Versions[0].Name).GroupVersion().WithKind(options)
	var verbs []string
	for _, method := range to.ConnectMethods() {
		if verb, ok := verbOf[method]; ok {
			verbs = append(verbs, verb)
		}
	}
	slices.Sort(verbs)
	add(k, &kind.Subresource{
		Name: name, Verbs: verbs, GVK: gvk, NoTable: true,
		Connect: to, Parameters: legacyscheme.ParameterCodec,
		Codec: newCodec(legacyscheme.Scheme, gvk.Group, gvk.Kind, gvk),
	})
}

// addPost gives a Kind a subresource whose bodies are created and not stored.
func addPost(k *kind.Kind, name string, body schema.GroupVersionKind, post rest.NamedCreater) {
	sub := &kind.Subresource{
		Name: name, Verbs: []string{"create"}, GVK: body, NoTable: true, Post: post,
		Codec: newCodec(legacyscheme.Scheme, body.Group, body.Kind, body),
	}
	add(k, sub)
}
