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

// rights are what the caller of one request may see of objects, now and in the past. It asks the authorizer
// once for each object.
//
// Whoever may get an object may see its versions from the time of the present namespace. Older versions
// belong to an earlier namespace of the same name, which had other owners: for these, the caller needs the
// right to get the object in all namespaces. Versions from before the definition of a custom resource belong
// to another definition, and rights on the present resource say nothing about them: for these, and for
// objects whose definition is gone, the caller needs the right to get versions/former. docs/security.md
// explains why.
type rights struct {
	who        user.Info
	authorizer authorizer.Authorizer
	kinds      kinds
	store      *sqlstore.Store
	known      map[place]*sight
}

// sight is what the caller may see of one object.
type sight struct {
	get        bool  // the present object; without this right, the caller must not learn that the object existed
	namespace  int64 // the revision that created its namespace; 0: it is in none
	definition int64 // the revision that created its definition; 0: its kind is built in
	wide       answer
	former     answer
}

// answer is the decision of an authorizer.
type answer int

const (
	unasked answer = iota
	yes
	no
)

// mostKnown bounds the cached decisions of a request.
const mostKnown = 10_000

// maySee reports whether the caller may see a version of an object, or the change that made it. In a version
// from before the definition, it clears the kind, because the present definition uses that name for other
// objects.
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

// mayForget reports whether the caller may delete the versions of an object, and if not, why. All versions
// are deleted, so the caller also needs the rights to see those from before the namespace or the definition.
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

// sight asks what the caller may see of an object. It reads the namespace and the definition after it has
// asked the authorizer, so that they are not older than the roles of the decision.
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

// since returns the revisions that created the namespace and the definition of an object; 0 if it has none.
func (r *rights) since(p place) (namespace, definition int64) {
	if p.namespace != "" {
		namespace = incarnation.OfNamespace(r.store, p.namespace)
	}
	if !r.kinds.builtIn(p) {
		definition = incarnation.OfDefinition(r.store, p.stored)
	}
	return namespace, definition
}

// builtIn reports whether the kind of an object needs no definition.
func (k kinds) builtIn(p place) bool {
	served := k[p.stored]
	return len(served) > 0 && served[0].Custom == nil
}

// isOf reports whether a version is from the time of the namespace or the definition that exists since a
// revision. The revisions of copied and imported rows have no order, so only the rows that were current at
// the end of the copy count: superseded rows may be from before.
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

// mayOutside reports whether the caller may use the verb in all namespaces or, if the definition is gone, on
// former objects.
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

// mayFormer reports whether the caller may use the verb on versions of what is gone. That is a right in all
// namespaces on the subresource former of versions, with the resource as its name.
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

// may reports whether the caller may use the verb in one of the groups that serve the object; one is enough.
func (r *rights) may(ctx context.Context, verb string, p place) (may bool, reason string, err error) {
	a := authorizer.AttributesRecord{
		User: r.who, Verb: verb, Namespace: p.namespace, Name: p.name,
		APIGroup: p.stored.Group, APIVersion: "*", Resource: p.stored.Resource, ResourceRequest: true,
	}
	served := r.kinds[p.stored]
	if len(served) == 0 { // the definition is gone
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
