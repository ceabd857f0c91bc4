package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// This file measures what it costs to decide who may do what: requests of a user with one role on a
// plinth with many roles, beside the same requests of the admin on a plinth that decides nothing.

// guards say what stands between a request and its verb.
type guards string

const (
	usual   guards = ""     // what plinth has by default
	guarded guards = "all"  // and an audit log of metadata
	open    guards = "none" // no authorization, no fairness, no audit log
)

const (
	oneUser  = "bench-user" // whose role allows everything in the namespace
	rbacPath = "/apis/rbac.authorization.k8s.io/v1"
)

// auditPolicy logs who did what, without the objects, once for each request, as the policy in
// docs/operations.md does.
const auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"

// measureRights measures two plinths of its own in turn.
func (r *run) measureRights(ctx context.Context, d *Database, dsn string) (err error) {
	if d.Name == "sqlite" {
		if err := r.measureDecision(ctx, d); err != nil {
			return fmt.Errorf("decision: %w", err)
		}
	}
	free, err := r.open(ctx, d, dsn, order{Guards: open})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free.close()) }()
	g, err := r.open(ctx, d, dsn, order{Guards: guarded})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	return g.steps(ctx, []step{
		{"roles", func(ctx context.Context) error { return g.prepareRights(ctx, free.toPlinth) }},
		{"requests of a user with one role", func(ctx context.Context) error { return g.compareRights(ctx, free) }},
	})
}

// prepareRights creates the objects on both sides and the roles on one, and makes the user of its
// clients the one that has one role.
func (g *rig) prepareRights(ctx context.Context, toFree apiload.Clients) error {
	for _, clients := range []apiload.Clients{toFree, g.toPlinth} {
		if err := fill(ctx, clients, g.scale.objects); err != nil {
			return err
		}
	}
	if err := g.createRoles(ctx); err != nil {
		return err
	}
	a, err := g.plinth.do(order{Do: doCertify, User: oneUser})
	if err != nil {
		return err
	}
	g.toPlinth.Close()
	g.plinth.target.Cert, g.plinth.target.Key = a.Cert, a.Key
	g.toPlinth, err = g.plinth.dial(ctx, echoPath+"/cm-00000")
	return err
}

// createRoles creates as many roles, and bindings, half of them in the namespace, and the user's own.
func (g *rig) createRoles(ctx context.Context) error {
	_, err := measure.Each(ctx, concurrent, g.scale.roles/2, func(ctx context.Context, i int) error {
		for _, where := range []string{"cluster", ""} {
			if err := g.createRole(ctx, where, fmt.Sprintf("role-%04d", i), fmt.Sprintf("user-%04d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.createRole(ctx, "", oneUser, oneUser)
}

// createRole creates a role with a binding; scope is "cluster" or, in the namespace, empty.
func (g *rig) createRole(ctx context.Context, scope, name, user string) error {
	kind, path := "Role", rbacPath+"/namespaces/bench/role"
	if scope == "cluster" {
		kind, path = "ClusterRole", rbacPath+"/clusterrole"
	}
	c := g.toPlinth.Of(len(name))
	_, err := c.Do(ctx, http.MethodPost, path+"s", fmt.Appendf(nil,
		`{"metadata":{"name":%q},"rules":[{"apiGroups":["","apps"],"resources":["configmaps","pods","deployments"],"verbs":["get","list","watch","create","update","patch","delete"]}]}`, name), nil)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, http.MethodPost, path+"bindings", fmt.Appendf(nil,
		`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`,
		name, kind, name, user), nil)
	return err
}

func (g *rig) compareRights(ctx context.Context, free *rig) error {
	var created atomic.Int64
	for _, c := range []struct {
		what    string
		workers int
		do      func(apiload.Clients) apiload.Operation
	}{
		{"get", concurrent, func(clients apiload.Clients) apiload.Operation { return get(clients, echoPath+"/cm-00000") }},
		{"list", 1, func(clients apiload.Clients) apiload.Operation { return get(clients, echoPath) }},
		{"update", concurrent, changeOneField},
		{"create", concurrent, func(clients apiload.Clients) apiload.Operation { return create(clients, "new-%07d", &created) }},
	} {
		err := g.compareRates(ctx, free.plinth, c.workers, c.do(g.toPlinth), c.do(free.toPlinth), Figure{
			What: c.what + " by a user with a role, audited", Floor: "nothing asked", Unit: "req/s", Target: figures.AtLeast(0.85),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	return nil
}

// decisions are how many are timed at once.
const decisions = 1000

// measureDecision measures how long a decision of RBAC takes, among as many roles. It depends on no
// database.
func (r *run) measureDecision(ctx context.Context, d *Database) (err error) {
	store, err := openStore(ctx, "sqlite://:memory:")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := fillRoles(ctx, store, r.scale.roles); err != nil {
		return err
	}
	a, err := authz.New(store, nil, nil)
	if err != nil {
		return err
	}
	what := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "user-0007", Groups: []string{"people", user.AllAuthenticated}},
		Verb: "get", APIVersion: "v1", Namespace: "n7", Resource: "configmaps", Name: "a", ResourceRequest: true,
	}
	var took figures.Series
	for range 10 * r.scale.rounds {
		begun := time.Now()
		for range decisions {
			if decision, reason, err := a.Authorize(ctx, what); decision != authorizer.DecisionAllow {
				return fmt.Errorf("refused: %s %v", reason, err)
			}
		}
		took.Add(time.Since(begun).Seconds() * 1e6 / decisions)
	}
	d.add(Figure{What: fmt.Sprintf("decision of RBAC among %s roles", figures.Number(float64(r.scale.roles))), Value: took.Median(), Unit: "µs", Target: figures.AtMost(5)})
	return nil
}

// fillRoles stores roles and their bindings, in fifty namespaces, as they are stored by plinth.
func fillRoles(ctx context.Context, store *sqlstore.Store, n int) error {
	_, err := measure.Each(ctx, concurrent, n, func(ctx context.Context, i int) error {
		name, namespace := fmt.Sprintf("role-%04d", i), fmt.Sprintf("n%d", i%50)
		for resource, role := range map[string]string{
			"roles": `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%[1]q,"namespace":%[2]q},
				"rules":[{"apiGroups":["","apps"],"resources":["configmaps","pods"],"verbs":["get","list","watch"]}]}`,
			"rolebindings": `{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%[1]q,"namespace":%[2]q},
				"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":%[1]q},
				"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"user-%04[3]d"}]}`,
		} {
			key := object.Key(object.Prefix("rbac.authorization.k8s.io", resource), namespace, name)
			if _, err := store.Commit(ctx, sqlstore.Change{Key: key, Value: fmt.Appendf(nil, role, name, namespace, i)}); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
