package definitions

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/sqlstore"
)

// served is what the registry has of one definition.
type served struct {
	uid        types.UID
	generation int64
	names      apiextensionsv1.CustomResourceDefinitionNames
	closed     bool
	broken     bool         // see kind.CustomResource
	kinds      []*kind.Kind // in the registry; none if the group is a built-in one
	stored     *kind.Kind   // of the storage version, served or not
	gone       chan struct{}
}

// change collects the Kinds to add to the registry and to take out of it.
type change struct {
	drop, add []*kind.Kind
	gone      []chan struct{}
}

// apply makes a change and ends the watches of the Kinds that are gone.
func (d *Definitions) apply(c *change) {
	if len(c.drop)+len(c.add) > 0 {
		d.config.Kinds.Replace(c.drop, c.add)
	}
	for _, gone := range c.gone {
		close(gone)
	}
}

// put serves a definition as its entry has it, if it may be served.
func (d *Definitions) put(e *sqlstore.Entry, c *change) {
	name := custom.DefinitionName(e)
	defer d.saw(name, e.Revision)
	def, err := custom.DefinitionOf(e)
	if err != nil {
		d.config.Logger.Error("CustomResourceDefinition cannot be served", "name", name, "err", err)
		return
	}
	if !d.servable(def.CRD) {
		d.remove(name, c)
		return
	}
	old := d.served[name]
	closed := def.CRD.DeletionTimestamp != nil || apihelpers.IsCRDConditionTrue(def.CRD, apiextensionsv1.Terminating)
	if old != nil && old.same(def.CRD) {
		if old.closed != closed {
			d.close(old, closed, c)
		}
		return
	}
	s, err := d.serve(def, e, old, closed)
	if err != nil {
		d.config.Logger.Error("CustomResourceDefinition cannot be served", "name", name, "err", err)
		return
	}
	d.remove(name, c)
	d.served[name] = s
	c.add = append(c.add, s.kinds...)
}

func (d *Definitions) saw(name string, revision int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[name] = revision
}

func (d *Definitions) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.seen, name)
}

// servable tells whether a definition's names are granted, or were before it changed. A
// built-in resource takes precedence over a definition with its name: what is stored is not the
// definition's.
func (d *Definitions) servable(crd *apiextensionsv1.CustomResourceDefinition) bool {
	granted := crd.Status.AcceptedNames
	if granted.Plural == "" || granted.Singular == "" || granted.Kind == "" || granted.ListKind == "" {
		return false
	}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) && !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return false
	}
	return !slices.ContainsFunc(d.config.Kinds.Set().Kinds, func(k *kind.Kind) bool {
		return k.Group == crd.Spec.Group && k.Resource == granted.Plural && k.Custom == nil
	})
}

// same tells whether the Kinds of s are those of crd.
func (s *served) same(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return s.uid == crd.UID && s.generation == crd.Generation && s.broken == broken(crd) && reflect.DeepEqual(s.names, crd.Status.AcceptedNames)
}

// broken tells whether a definition cannot be established, because the server could not speak to its
// conversion webhook. Its names are granted, so that upstream refuses requests with an error of the
// server; discovery and OpenAPI do not have it.
func broken(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return badBundle(crd) && !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// serve makes the Kinds of a definition. A definition that was not served before has no
// objects from an older schema. If it is not known when a schema changed, assume now.
func (d *Definitions) serve(def *custom.Definition, e *sqlstore.Entry, old *served, closed bool) (*served, error) {
	crd := def.CRD
	used := *def // a copy: the entry's is shared
	if crd.Generation > 1 || old != nil && old.uid == crd.UID {
		used.Since, used.At = e.Revision, e.At
	}
	s := &served{uid: crd.UID, generation: crd.Generation, names: crd.Status.AcceptedNames, closed: closed, gone: make(chan struct{})}
	kinds, stored, err := custom.Kinds(&used, d.source(crd.Name), d.converters, s.gone)
	if err != nil {
		return nil, err
	}
	if d.config.Kinds.Set().HasGroup(crd.Spec.Group) {
		kinds = nil // as upstream, where all paths below a built-in group lead to its own resources
	}
	if s.broken = broken(crd); s.broken {
		for _, k := range kinds {
			k.Custom.Broken = true
		}
	}
	if closed {
		kinds = closedKinds(kinds)
	}
	s.kinds, s.stored = kinds, stored
	return s, nil
}

// source returns a function that reads the definition from the store, so that Kinds keep no
// bytes of older revisions. If the schema has changed since, the Kind is about to be
// replaced.
func (d *Definitions) source(name string) func() ([]byte, error) {
	return func() ([]byte, error) {
		e := d.config.Store.Get(custom.DefinitionPrefix + name)
		if e == nil {
			return nil, fmt.Errorf("%s has been deleted: %w", name, kind.ErrReplaced)
		}
		return e.Value, nil
	}
}

// close sets whether creates are refused because the definition is being deleted.
func (d *Definitions) close(s *served, closed bool, c *change) {
	c.drop = append(c.drop, s.kinds...)
	if closed {
		s.kinds = closedKinds(s.kinds)
	}
	s.closed = closed
	c.add = append(c.add, s.kinds...)
}

func closedKinds(kinds []*kind.Kind) (closed []*kind.Kind) {
	for _, k := range kinds {
		c := *k
		terminating := *k.Custom
		terminating.Terminating = true
		c.Custom = &terminating
		closed = append(closed, &c)
	}
	return closed
}

// remove takes a definition's resources out of service.
func (d *Definitions) remove(name string, c *change) {
	s := d.served[name]
	if s == nil {
		return
	}
	delete(d.served, name)
	c.drop = append(c.drop, s.kinds...)
	c.gone = append(c.gone, s.gone)
}
