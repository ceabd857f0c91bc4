package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/flagz"

	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/debugging"
	"github.com/plinth-io/plinth/server/peers"
)

const rowsOfIdentities = "testdata/identities/rows.txt"

// TestRoutesOfIdentities asks for each resource and each other route that the server has, by each verb
// and method, as each identity. What kube-apiserver decides is in the rows; a resource, a
// subresource or a route without a row fails the test.
func TestRoutesOfIdentities(t *testing.T) {
	p := openParties(t, Config{Debugging: debugging.Options{Profiling: true}, Flags: flagz.NamedFlagSetsReader{}})
	rows, asked := readRights(t, rowsOfIdentities), map[string]bool{}
	questions := resourceQuestions(p.server.kinds.Set())
	for _, q := range pathQuestions(t, p.server.guard.Paths(), p.server.kinds.Set()) {
		row, err := rows.path(q.target)
		if err != nil {
			t.Error(err)
			continue
		}
		q.row = row
		questions = append(questions, q)
	}
	for _, q := range questions {
		asked[q.row] = true
		if rows[q.row] == nil {
			t.Errorf("%s has no row in %s", q.row, rowsOfIdentities)
			rows[q.row] = map[string][]string{}
		}
		for _, i := range p.list {
			if q.isFor(i.name) {
				p.check(t, q, i, rows.allowed(q, i.name))
			}
		}
	}
	for row := range rows {
		if !asked[row] && !strings.HasSuffix(row, "*") {
			t.Errorf("the row %s of %s is of no resource and no route", row, rowsOfIdentities)
		}
	}
}

// rightsOfRoutes are the resources that routes ask for in place of their paths.
var rightsOfRoutes = map[string]string{backups.Path: "backups", digestPath: "digests", peers.Path: "servers"}

// slowProfiles are recorded for as long as nobody says, which is too long for a test.
var slowProfiles = []string{"/debug/pprof/profile", "/debug/pprof/trace"}

// isFor saves time: further versions and another namespace of a resource are asked for as some
// identities only, and methods that a path does not have as one.
func (q question) isFor(identity string) bool {
	switch {
	case !q.served:
		return identity == "nobody"
	case slices.Contains(slowProfiles, q.target):
		return identity != "admin"
	case !q.first:
		return slices.Contains([]string{"nobody", "account", "node"}, identity)
	case q.scope == "other":
		return slices.Contains([]string{"admin", "nobody", "reader", "account", "node"}, identity)
	}
	return true
}

// check asks and compares the decision: 401, the authorizer's 403, or anything else.
func (p *parties) check(t *testing.T, q question, i *identity, allowed bool) {
	t.Helper()
	a := p.ask(t, i, q.method, q.target, nil)
	if i.user == "" {
		if a.code != 401 || !strings.Contains(a.body, `"message":"Unauthorized"`) {
			t.Errorf("%s of %s: %d %s, want 401", q, i.name, a.code, a.body)
		}
		return
	}
	message, refused := a.refused(i.user)
	if refused == allowed || a.code == 401 {
		t.Errorf("%s of %s: %d %s, allowed %v", q, i.name, a.code, message, allowed)
	}
	if i.name == "nobody" && refused && !strings.Contains(message, q.asked()) {
		t.Errorf("%s asked for another permission than%s: %s", q, q.asked(), message)
	}
}

// asked is how upstream's errors name the permission that a question needs.
func (q question) asked() string {
	if resource := rightsOfRoutes[q.target]; resource != "" {
		return fmt.Sprintf(` cannot create resource %q in API group "plinth.io" at the cluster scope`, resource)
	}
	if strings.HasPrefix(q.row, "/") {
		return fmt.Sprintf(` cannot %s path "%s"`, q.verb, q.target)
	}
	whole, sub, _ := strings.Cut(q.row, "/")
	resource, group, _ := strings.Cut(whole, ".")
	if sub != "" {
		resource += "/" + sub
	}
	where := fmt.Sprintf("in the namespace %q", q.scope)
	if q.scope == "all" {
		where = "at the cluster scope"
	}
	if whole == "namespaces" && strings.Contains(q.target, "/absent") {
		where = `in the namespace "absent"` // upstream takes a namespace to be in itself
	}
	return fmt.Sprintf(` cannot %s resource %q in API group %q %s`, q.verb, resource, group, where)
}
