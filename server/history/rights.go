package history

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// rights are what the caller of one request may do with objects. It asks once for each object.
type rights struct {
	who        user.Info
	authorizer authorizer.Authorizer
	kinds      kinds
	known      map[place]bool
}

// mayGet says whether the caller may get an object now. Who may not, may not know that it was there.
func (r *rights) mayGet(ctx context.Context, p place) (bool, error) {
	if may, ok := r.known[p]; ok {
		return may, nil
	}
	may, _, err := r.may(ctx, "get", p)
	if err != nil {
		return false, err
	}
	if r.known == nil || len(r.known) > mostKnown {
		r.known = map[place]bool{}
	}
	r.known[p] = may
	return may, nil
}

// mostKnown bounds the memory of a request.
const mostKnown = 10_000

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
