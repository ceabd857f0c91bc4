package history

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/incarnation"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// rights are what the caller of one request may see of objects, now and in the past. It asks once for each
// object.
//
// Who may get an object sees its versions from the time of the namespace that is there now. Those from before
// belong to another namespace of that name, which had other owners: they take the right to get the object in
// all namespaces. Versions from before the definition of a custom resource belong to another definition, and
// no right on the resource of that name is about them: they take the right to get versions/former. So do
// objects whose definition is gone. docs/security.md has the reasons.
type rights struct {
	who        user.Info
	authorizer authorizer.Authorizer
	kinds      kinds
	store      *sqlstore.Store
	known      map[place]*sight
}

// sight is what the caller may see of one object.
type sight struct {
	get        bool  // the object as it is now. Who may not, may not know that it was there.
	namespace  int64 // since when its namespace is there; 0: it is in none
	definition int64 // since when its definition is there; 0: its kind is built in
	wide       answer
	former     answer
}

// answer is what an authorizer said.
type answer int

const (
	unasked answer = iota
	yes
	no
)

// mostKnown bounds the memory of a request.
const mostKnown = 10_000

// maySee says whether the caller may see a version of an object, or the change that made it. A version from
// before the definition loses its kind: that is what the present definition calls others.
func (r *rights) maySee(ctx context.Context, p place, key string, v *v1.Version) (bool, error) {
	s, err := r.sight(ctx, p)
	if err != nil || !s.get {
		return false, err
	}
	ofDefinition, err := r.isOf(ctx, s.definition, key, v.Revision)
	if err != nil {
		return false, err
	}
	if !ofDefinition {
		v.Object.Kind = ""
		return r.mayFormer(ctx, s, "get", p)
	}
	ofNamespace, err := r.isOf(ctx, s.namespace, key, v.Revision)
	if ofNamespace || err != nil {
		return ofNamespace, err
	}
	return r.mayOutside(ctx, s, "get", p)
}

// mayForget says whether the caller may delete the versions of an object, with a reason if not: all of them
// go, so that those from before its namespace or its definition take the rights that it takes to see them.
func (r *rights) mayForget(ctx context.Context, p place, key string) (may bool, reason string, err error) {
	if may, reason, err = r.may(ctx, "delete", p); !may || err != nil {
		return may, reason, err
	}
	s := &sight{}
	s.namespace, s.definition = r.since(p)
	before := max(s.namespace, s.definition)
	if before <= r.store.Brought() {
		return true, "", nil
	}
	oldest, err := r.store.History(ctx, changelog.HistoryQuery{From: key, To: key + "\x00", Through: before - 1, Oldest: true, Limit: 1})
	switch {
	case err != nil || len(oldest) == 0:
		return err == nil, "", err
	case oldest[0].Revision < s.definition:
		may, err = r.mayFormer(ctx, s, "delete", p)
	default:
		may, err = r.mayOutside(ctx, s, "delete", p)
	}
	return may, "some are from before the namespace or the definition that is there now", err
}

// sight asks what the caller may see of an object. The namespace and the definition are looked up after the
// authorizer was asked: they are then no older than the roles by which it decided.
func (r *rights) sight(ctx context.Context, p place) (*sight, error) {
	if s := r.known[p]; s != nil {
		return s, nil
	}
	get, _, err := r.may(ctx, "get", p)
	if err != nil {
		return nil, err
	}
	s := &sight{get: get}
	if get {
		s.namespace, s.definition = r.since(p)
	}
	if r.known == nil || len(r.known) > mostKnown {
		r.known = map[place]*sight{}
	}
	r.known[p] = s
	return s, nil
}

// since returns since when the namespace and the definition of an object are there; 0 where it has none.
func (r *rights) since(p place) (namespace, definition int64) {
	if p.namespace != "" {
		namespace = incarnation.OfNamespace(r.store, p.namespace)
	}
	if !r.kinds.builtIn(p) {
		definition = incarnation.OfDefinition(r.store, p.stored)
	}
	return namespace, definition
}

// builtIn says whether the kind of an object needs no definition.
func (k kinds) builtIn(p place) bool {
	served := k[p.stored]
	return len(served) > 0 && served[0].Custom == nil
}

// isOf says whether a version is from the time of a namespace or a definition that is there since a revision.
// What came with a copy or an import has revisions in any order, so that only what was there at its end
// counts: what was superseded while it ran may be from before.
func (r *rights) isOf(ctx context.Context, since int64, key string, revision int64) (bool, error) {
	brought := r.store.Brought()
	if since == 0 || since > brought || revision > brought {
		return revision >= since, nil
	}
	if _, changed := r.store.Incarnation(key); changed == revision {
		return true, nil
	}
	found, err := r.store.Past(ctx, key, key+"\x00", brought, 1)
	if errors.Is(err, changelog.ErrCompacted) {
		return false, nil
	}
	return err == nil && len(found) == 1 && found[0].Revision == revision, err
}

// mayOutside says whether the caller may do it in all namespaces, or with what is gone.
func (r *rights) mayOutside(ctx context.Context, s *sight, verb string, p place) (bool, error) {
	if s.wide == unasked {
		everywhere := p
		everywhere.namespace = ""
		may, _, err := r.may(ctx, verb, everywhere)
		if err != nil {
			return false, err
		}
		s.wide = answered(may)
	}
	if s.wide == yes {
		return true, nil
	}
	return r.mayFormer(ctx, s, verb, p)
}

// mayFormer says whether the caller may do it with versions of what is gone: the right is one for all
// namespaces, to the subresource former of versions, and its name is that of the resource.
func (r *rights) mayFormer(ctx context.Context, s *sight, verb string, p place) (bool, error) {
	if s.former == unasked {
		may, _, err := r.ask(ctx, authorizer.AttributesRecord{
			User: r.who, Verb: verb, Name: p.stored.String(),
			APIGroup: v1.GroupName, APIVersion: v1.GroupVersion.Version, Resource: "versions", Subresource: "former", ResourceRequest: true,
		})
		if err != nil {
			return false, err
		}
		s.former = answered(may)
	}
	return s.former == yes, nil
}

func answered(may bool) answer {
	if may {
		return yes
	}
	return no
}

// may asks for each group that serves the object: one in which the caller may do it is enough.
func (r *rights) may(ctx context.Context, verb string, p place) (may bool, reason string, err error) {
	a := authorizer.AttributesRecord{
		User: r.who, Verb: verb, Namespace: p.namespace, Name: p.name,
		APIGroup: p.stored.Group, APIVersion: "*", Resource: p.stored.Resource, ResourceRequest: true,
	}
	served := r.kinds[p.stored]
	if len(served) == 0 { // its definition is gone
		return r.ask(ctx, a)
	}
	for _, k := range served {
		a.APIGroup, a.Resource, a.APIVersion = k.Group, k.Resource, k.Versions[0].Name
		if may, reason, err = r.ask(ctx, a); may || err != nil {
			break
		}
	}
	return may, reason, err
}

func (r *rights) ask(ctx context.Context, a authorizer.Attributes) (may bool, reason string, err error) {
	decision, reason, err := r.authorizer.Authorize(ctx, a)
	if decision == authorizer.DecisionAllow {
		return true, "", nil
	}
	return false, reason, err
}
