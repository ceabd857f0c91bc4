package guard

import (
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/server/authz"
)

// Right is the permission that one of plinth's own routes requires in place of a permission for its path: the verb
// create on this resource in the group plinth.io. Roles for monitoring often allow get on all paths, which must not
// include backups.
type Right string

// RightsGroup is the group of the resources that Rights name. It serves nothing.
const RightsGroup = "plinth.io"

// RightOfServers is the Right for requests that servers on one database send each other. Those servers have it
// whichever authorizers are configured.
const RightOfServers Right = "servers"

// RouteFor is Route for a path that needs a right of its own, by whatever method it is asked for.
func (g *Guard) RouteFor(right Right, path string, handler func(*Call) error) {
	g.rights[path] = right
	g.Route(path, handler)
}

// attributes are what authorization and the audit log know about the request.
func (x *Call) attributes() authorizer.Attributes {
	if x.what == nil {
		what := authz.Attributes(x.User, x.Info)
		if x.right != "" {
			what.ResourceRequest, what.Verb, what.APIGroup, what.Resource = true, "create", RightsGroup, string(x.right)
		}
		x.what = &what
	}
	return x.what
}
