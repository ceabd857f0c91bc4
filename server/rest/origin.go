package rest

import (
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// writing are the verbs whose requests may change an object. Any request to a subresource may.
var writing = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// noteOrigin lets what the request writes say in the log where it comes from.
func (q *request) noteOrigin() {
	if !writing[q.info.Verb] && q.info.Subresource == "" {
		return
	}
	o := &changelog.Origin{
		Author: changelog.Author{
			User: q.who.GetName(), Impersonator: audit.Impersonator(q.ctx),
			Verb: q.info.Verb, Subresource: q.info.Subresource,
		},
		AuditID: audit.ID(q.w.Header()),
	}
	if values := q.values(); len(values["fieldManager"]) > 0 {
		o.Manager = values["fieldManager"][0]
	}
	o.Manager = q.manager(o.Manager)
	q.ctx = sqlstore.WithOrigin(q.ctx, o)
}

// Own is the author of what the server writes by itself.
var Own = changelog.Author{User: user.APIServerUser}
